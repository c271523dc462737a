#!/bin/sh
# Make the secrets that compose.yaml names, unless they are there: `sh scripts/container_secrets.sh [FOLDER]`.
set -eu
folder=${1:-secrets}
[ ! -e "$folder" ] || { echo "container_secrets: $folder is there already: nothing done" >&2; exit 1; }
random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# A container's user is another one than yours: the files can be read by all who get into the folder, and
# that is you alone. Docker hands them on by themselves.
# They get their name all at once, so that whoever is stopped half-way leaves none that lacks a file.
made=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$made"' EXIT
trap 'exit 1' HUP INT TERM
umask 333
password=$(random)
printf '%s\n' "$password" >"$made/database-password"
printf 'postgresql://memtrend:%s@database/memtrend\n' "$password" >"$made/database-url"
printf '%s\n' "$(random)" >"$made/api-token"
mv "$made" "$folder"
