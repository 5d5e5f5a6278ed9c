#!/bin/sh
# Fuzzes every fuzz target of the module in turn, each for the time given ("10s").
set -eu
cd "$(dirname "$0")/.."
time=${1:?say how long to fuzz each target, such as 10s}
go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
  set -- "$dir"/*_test.go
  [ -e "$1" ] || continue
  grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$@" | sed 's/^func //' | while read -r target; do
    echo "$package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
  done
done
