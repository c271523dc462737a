#!/bin/sh
# Make the secrets that compose.yaml names, unless they are there: `sh scripts/container_secrets.sh [FOLDER]`.
set -eu
folder=${1:-secrets}
[ ! -e "$folder" ] || { echo "container_secrets: $folder is there already: nothing done" >&2; exit 1; }
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# A container's user is another one than yours: the files can be read by all who get into the folder, and
# that is you alone. Docker hands them on by themselves.
mkdir -m 700 "$folder"
umask 333
password=$(random)
printf '%s\n' "$password" >"$folder/database-password"
printf 'postgresql://memtrend:%s@database/memtrend\n' "$password" >"$folder/database-url"
printf '%s\n' "$(random)" >"$folder/api-token"
