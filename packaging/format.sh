#!/bin/sh
# Names the Go files that gofumpt would write differently, and fails if any.
set -eu
cd "$(dirname "$0")/.."
files=$(go tool -modfile=packaging/tools.mod gofumpt -l .)
[ -z "$files" ] || {
  echo "$files"
  echo 'not formatted: run "go tool -modfile=packaging/tools.mod gofumpt -w ." and look at what changed' >&2
  exit 1
}
