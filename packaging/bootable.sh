#!/bin/sh
# Says whether this machine can boot a system in systemd-nspawn, with a sentence and
# exit code 1 where it cannot; or boots one:
#
#   packaging/bootable.sh
#   packaging/bootable.sh run ARGUMENT...     arguments of systemd-nspawn
set -eu
no() { echo "$*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || no "only root can boot a system in a container"
command -v systemd-nspawn >/dev/null || no "systemd-nspawn is not installed: packaging/setup.sh boot"
unshare --mount --pid --cgroup --uts --ipc --net --fork mount -t tmpfs none /mnt 2>/dev/null ||
  no "the kernel does not let this container make containers"
[ "${1:-}" = run ] || exit 0
shift

# Where systemd is process 1 it gives the new system a control group of its own.
[ -d /run/systemd/system ] && exec systemd-nspawn "$@"

# Elsewhere we do: two systems in one group would end each other's processes.
group=portcullis-boot-$$
groups=
for tree in /sys/fs/cgroup /sys/fs/cgroup/*; do
  [ -w "$tree/cgroup.procs" ] && mkdir "$tree/$group" 2>/dev/null || continue
  groups="$groups $tree/$group"
  case $tree in
  */cpuset | */cpuset,*)
    cat "$tree/cpuset.cpus" >"$tree/$group/cpuset.cpus"
    cat "$tree/cpuset.mems" >"$tree/$group/cpuset.mems"
    ;;
  esac
done
[ -n "$groups" ] || no "no control groups are mounted"
# The groups are removed by who is not in them.
sh -c 'for g in $0; do echo $$ >"$g/cgroup.procs"; done; exec systemd-nspawn --keep-unit "$@"' "$groups" "$@" && rc=0 || rc=$?
for g in $groups; do find "$g" -depth -type d -exec rmdir {} \; 2>/dev/null || :; done
exit $rc
