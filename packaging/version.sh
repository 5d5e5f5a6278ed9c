#!/bin/sh
# Prints the version of this checkout, the same for programs and packages:
# "1.2.0" on a tag v1.2.0, "1.2.0+7.g0123456" seven commits later,
# "0.0.0+7.g0123456" when there is no tag yet, ".dirty" behind it when files
# differ from the commit, and "0.0.0+devel" outside a checkout. All of them are
# versions to dpkg, to rpm and to semver, and they sort in order of time.
#
# "version.sh epoch" prints the time of the commit in seconds instead, so that
# two packages made from one commit are the same to the byte.
set -eu
cd "$(dirname "$0")/.."

if [ "${1:-}" = epoch ]; then
  git log -1 --format=%ct 2>/dev/null || echo 0
  exit
fi

commit=$(git rev-parse --short=7 HEAD 2>/dev/null) || { echo 0.0.0+devel; exit; }
tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || tag=
since=$(git rev-list --count "${tag:+$tag..}HEAD")

version=${tag#v}
[ -n "$tag" ] || version=0.0.0
[ "$since" = 0 ] || version=$version+$since.g$commit
[ -z "$(git status --porcelain --untracked-files=no)" ] || case $version in
  *+*) version=$version.dirty ;;
  *) version=$version+dirty ;;
esac
echo "$version"
