#!/bin/sh
# Fails where gotestsum ran no test, as with a -run that matches none.
[ "${TESTS_TOTAL:-0}" -gt 0 ] || {
  echo 'no test ran' >&2
  exit 1
}
