#!/usr/bin/env bash
# Runs a command, such as go test, with its temporary files in memory where the machine has a tmpfs for them:
#
#   packaging/inmemory.sh COMMAND ARGUMENT...
#
# Tests make and remove many small files, and go test a program for each package; none must outlive the run. A TMPDIR
# that is set stays. The folder is the same in each run, since go test keeps results by the variables that a test has
# read. The last of the commands that run beside each other empties it, and so does the next run after one that was
# killed.
#
# IN_MEMORY is the tmpfs, /dev/shm where it is not set. It needs IN_MEMORY_MIB (6144) MiB of free space, and the machine
# as much free memory: nothing sets the memory of a tmpfs aside. Elsewhere the command runs as if it were called itself.
set -euo pipefail
[ $# -gt 0 ] || {
  echo 'usage: packaging/inmemory.sh COMMAND ARGUMENT...' >&2
  exit 2
}
tmpfs=${IN_MEMORY:-/dev/shm} wanted=${IN_MEMORY_MIB:-6144}
dir=$tmpfs/pct-$(id -u) # short: the path of a socket may have 107 bytes

memory() { awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo; }
space() { df --output=avail -BM "$tmpfs" | awk 'NR == 2 { print int($1) }'; }
# Everyone knows the folder's name: it must be ours, and is closed to others.
ours() { [ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ] && chmod 700 "$dir"; }
# In some containers no program may run from a tmpfs.
programs() { printf '#!/bin/sh\n' >"$dir/.try.$$" && chmod 700 "$dir/.try.$$" && "$dir/.try.$$" 2>/dev/null && rm "$dir/.try.$$"; }
empty() {
  if flock -xn "$lock"; then # no other run is in there
    find "$dir" -mindepth 1 -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null || :
    find "$dir" -mindepth 1 -delete
  fi
}

if [ -n "${TMPDIR:-}" ] || [ "$(stat -f -c %T "$tmpfs" 2>/dev/null)" != tmpfs ] || [ ! -w "$tmpfs" ] ||
  [ "$(space)" -lt "$wanted" ] || [ "$(memory)" -lt "$wanted" ]; then
  exec "$@"
fi
mkdir -m 700 "$dir" 2>/dev/null || ours || exec "$@"
exec {lock}<"$dir"
empty
flock -s "$lock"
programs || exec "$@"
trap empty EXIT
TMPDIR=$dir "$@" {lock}<&-
