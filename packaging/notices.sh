#!/bin/sh
# Prints the licenses and notices of every module a program links, as those
# licenses ask of whoever passes a program on.
#
#   packaging/notices.sh PROGRAM
set -eu
cd "$(dirname "$0")/.."
program=${1:?say which program}
echo "$program contains the Go standard library and the modules below."
{
  echo "go $(go env GOVERSION) $(go env GOROOT)"
  go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' "./cmd/$program" | LC_ALL=C sort -u
} | while read -r module version dir; do
  for file in "$dir"/LICEN[SC]E* "$dir"/COPYING* "$dir"/NOTICE* "$dir"/PATENTS*; do
    [ -f "$file" ] || continue
    printf '\n==== %s %s: %s\n\n' "$module" "$version" "${file##*/}"
    cat "$file"
  done
done
