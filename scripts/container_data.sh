#!/bin/sh
# Make the folder that a new volume begins as: `sh scripts/container_data.sh FOLDER`.
set -eu
mkdir -p "$1/suites" "$1/cache"
