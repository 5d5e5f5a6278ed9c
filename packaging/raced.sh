#!/usr/bin/env bash
# Lists the packages whose tests run under the race detector: those that start goroutines,
# in tests too; tests that only run beside each other share nothing. Left out by name are tests that run in virtual time on one goroutine each,
# without anything that they share, and those that start programs which the race detector
# does not see.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
left_out='portcullis/(fabricsm/(drill|sm|sm/keymgr)|cmd/portcullis-(bench|chaos|demo|sim/drills))'
starts='(^|[^[:alnum:]_])go (func|[[:alnum:]_.]+\()|\.Go\(|synctest\.Test'

go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r package dir; do
  if grep -qE "$starts" "$dir"/*.go && ! [[ $package =~ ^$left_out$ ]]; then
    echo "$package"
  fi
done
