#!/bin/sh
# Makes a deb and an rpm of every document of nfpm.yaml into dist/, from the
# programs in bin/. Two runs on one commit make the same bytes. With a name, only
# that package is made, into another directory, which is emptied first.
#
#   packaging/package.sh VERSION [NAME DIRECTORY]
set -eu
cd "$(dirname "$0")/.."
VERSION=${1:?say which version, as packaging/version.sh does}
only=${2:-}
dist=${3:-dist}
GOARCH=$(go env GOARCH)
SOURCE_DATE_EPOCH=$(packaging/version.sh epoch)
export VERSION GOARCH SOURCE_DATE_EPOCH
umask 022

stage=$dist/stage
rm -rf "$dist"
mkdir -p "$stage"
bin/portcullisd --print-config >"$stage"/portcullisd.yaml
if [ -z "$only" ]; then
  bin/portcullis completion bash >"$stage"/portcullis.bash
  bin/portcullis completion fish >"$stage"/portcullis.fish
  bin/portcullis completion zsh >"$stage"/_portcullis
fi

# document N prints the Nth package of nfpm.yaml.
document() { awk -v want="$1" 'BEGIN { n = 1 } $0 == "---" { n++; next } n == want' nfpm.yaml | sed "s,dist/stage/,$stage/,"; }

n=0
while n=$((n + 1)) && name=$(document $n | sed -n 's/^name: //p') && [ -n "$name" ]; do
  [ "${only:-$name}" = "$name" ] || continue
  packaging/notices.sh "$name" >"$stage"/"$name".notices
  find "$stage" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
  for format in deb rpm; do
    document $n | go tool -modfile=packaging/tools.mod nfpm package --config - --packager $format --target "$dist" >"$stage"/log ||
      { cat "$stage"/log >&2; exit 1; }
  done
done
rm -r "$stage"
ls -l "$dist"
