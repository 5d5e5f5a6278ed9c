#!/bin/sh
# Checks portcullis.pml with spin: every state within the bounds, all assertions, and that each removal ends.
# Then each planted fault has to be found: a check that cannot fail shows nothing.
#
#     packaging/model/check.sh           # all; at most 2 minutes of one CPU, and 2 GiB
#     packaging/model/check.sh short     # small bounds, two faults
set -eu
here=$(cd "$(dirname "$0")" && pwd)
limit=120    # seconds of one CPU
memory=1800  # MiB

say() { echo "model: $*" >&2; }
die() { say "$@"; exit 1; }

"$here/../setup.sh" model
mode=${1:-all}
case $mode in all | short) ;; *) die "no mode is called \"$mode\"; name none, or short" ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pan KIND DEFINES... makes the checker of one configuration, and runs it to its end. KIND is safety or progress.
pan() {
  kind=$1; shift
  mkdir -p "$work/run"
  cd "$work/run"
  rm -f ./*
  spin -a "$@" "$here/portcullis.pml" >spin 2>&1 || { cat spin >&2; die "spin does not read portcullis.pml with $*"; }
  # A checker that reads few states is made faster than it is optimized.
  case $kind in
    safety) built="$optimize -DSAFETY -DNOCLAIM" runs= ;;
    # Spin's partial orders do not go together with fairness and rendezvous.
    progress) built="$optimize -DNFAIR=3 -DNOREDUCE" runs="-a -f" ;;
  esac
  # shellcheck disable=SC2086 # lists of words
  gcc $built -w -DMEMLIM=$memory -o pan pan.c
  # shellcheck disable=SC2086 # a list of words
  ./pan -m200000 -w22 $runs >out 2>&1 || true
  cd "$here"
  out=$work/run/out
  ! grep -q 'Search not completed\|max search depth\|out of memory\|hash table\( is\)\? full' "$out" || [ "$expected" != none ] ||
    { trail "$@"; cat "$out" >&2; die "the search with $* did not come to its end"; }
  grep -q 'errors: [01]$' "$out" || { cat "$out" >&2; die "the checker with $* did not run"; }
  [ "$kind" = safety ] || grep -q 'never claim.*+ (ends)' "$out" || die "the claim was not checked with $*"
}

# trail prints how a violation came about.
trail() {
  cd "$work/run"
  for t in ./*.trail; do
    [ ! -e "$t" ] || spin -k "$t" -p -g -l "$@" "$here/portcullis.pml" | grep -v 'goto\|else' | tail -n 200 >&2
  done
  cd "$here"
}

# holds KIND NAME DEFINES... fails unless every state of a configuration was reached, and nothing is wrong in any.
holds() {
  kind=$1 name=$2; shift 2
  expected=none optimize=-O2
  pan "$kind" "$@"
  grep -q 'errors: 0$' "$out" || { trail "$@"; cat "$out" >&2; die "$name does not hold"; }
  states=$(awk '/states, stored/ { print $1; exit }' "$out")
  [ "$states" -ge 1000 ] || die "$name has $states states: the bounds leave nothing to check"
  # What this configuration does not reach, by line and text; the ends of endless loops are not meant to be.
  sed -n 's/.*portcullis\.pml:\([0-9]*\), state [0-9]*, \(".*"\)$/\1 \2/p' "$out" | grep -v -e '-end-' | sort -u >"$work/unreached" || true
  if [ -e "$work/never" ]; then
    comm -12 "$work/never" "$work/unreached" >"$work/both"
    mv "$work/both" "$work/never"
  else
    mv "$work/unreached" "$work/never"
  fi
  say "$name holds in $states states"
}

# violates KIND NAME TEXT DEFINES... fails unless the checker finds exactly that assertion, or the claim, violated.
violates() {
  kind=$1 name=$2 text=$3; shift 3
  expected=some optimize=-O0
  pan "$kind" "$@" -DFAULTY
  grep -q 'errors: 1$' "$out" || die "$name is not found: the model does not check what it is to check"
  grep -qF "$text" "$out" || { grep 'pan:' "$out" >&2; die "$name is found by another check than by: $text"; }
  say "$name is found: $text"
}

covered='assertion violated ((portKey==0)'
in_force='assertion violated ((grant!=2)||((((assigned'
proven='assertion violated ((grant!=2)||(((attestedEpoch'
removal_wins='assertion violated ((grant!=2)|| !(((ended'
quarantined='assertion violated ((grant!=2)||( !(fenced)'
key_known='assertion violated (((deviceKey==current)'
one_writer='assertion violated ((holder==me)'
ends='acceptance cycle'

little="-DORDERS=1 -DTERMS=2 -DREPEATS=0 -DCLAIMS=0"

if [ "$mode" = short ]; then
  # shellcheck disable=SC2086 # lists of words
  holds safety "admission with one takeover, briefly" $little
  holds progress "each removal ends, briefly" $little
  violates safety "evidence without epoch" "$proven" -DORDERS=2 -DTERMS=1 -DFAULT_NO_EPOCH
  violates safety "a leader that does not look at its lease" "$one_writer" $little -DFAULT_NO_LOOK
  exit 0
fi

# shellcheck disable=SC2086 # lists of words
{
  holds safety "admission with three commands and one takeover" -DORDERS=3 -DTERMS=2
  holds safety "admission with one command and two takeovers" -DORDERS=1 -DTERMS=3 -DREPEATS=0
  holds safety "a packet of a paused leader, if absence waits for the keys" -DORDERS=2 -DTERMS=3 -DREPEATS=0 -DCLAIMS=0 -DPAUSE -DKEYS_FIRST
  holds progress "each removal ends" -DORDERS=3 -DTERMS=2 -DREPEATS=0
  holds progress "each removal ends, also with paused leaders" -DORDERS=2 -DTERMS=3 -DREPEATS=0 -DCLAIMS=0 -DPAUSE -DKEYS_FIRST

  [ ! -s "$work/never" ] || { cat "$work/never" >&2; die "no configuration reaches these lines"; }

  # The known limit, which docs/understand/leadership.md names.
  violates safety "the limit: a packet of a paused leader, before the keys are changed" "$covered" -DORDERS=2 -DTERMS=2 -DREPEATS=0 -DCLAIMS=0 -DPAUSE

  violates safety "commands without epoch" "$proven" -DORDERS=3 -DTERMS=2 -DFAULT_NO_EPOCH
  violates safety "a grant before the proof of the lock" "$in_force" -DORDERS=3 -DTERMS=2 -DFAULT_GRANT_BEFORE_PROOF
  violates safety "proofs that outlive their assignment" "$proven" -DORDERS=3 -DTERMS=2 -DFAULT_KEEPS_PROOFS
  violates safety "an assignment before absence was proven" "$covered" -DORDERS=3 -DTERMS=2 -DFAULT_ASSIGN_WHILE_RELEASING
  violates safety "a record that is written without condition" "$removal_wins" -DORDERS=2 -DTERMS=2 -DCLAIMS=0 -DFAULT_OVERWRITES
  violates safety "a claimed GUID that holds no host" "$quarantined" -DORDERS=1 -DTERMS=2 -DREPEATS=0 -DFAULT_IGNORES_CLAIMS
  violates safety "a read-back that is older than the grant" "$covered" -DORDERS=2 -DTERMS=2 -DCLAIMS=0 -DFAULT_OLD_READBACK
  violates safety "a leader that does not look at its lease" "$one_writer" $little -DFAULT_NO_LOOK
  violates safety "a lease that the store ends before its holder does" "$one_writer" $little -DFAULT_NO_MARGIN
  violates safety "an M_Key that is set before it is saved" "$key_known" $little -DFAULT_SET_BEFORE_SAVE
  violates safety "an M_Key that is believed without a Get" "$key_known" $little -DFAULT_BELIEVES_THE_SET
  violates progress "a removal that the next leader does not go on with" "$ends" -DORDERS=2 -DTERMS=2 -DREPEATS=0 -DCLAIMS=0 -DFAULT_LEAVES_REMOVALS
}

# What this shell's programs used: "1m23.456s 0m4.567s" in the second line. Other programs of the machine do not count.
took=$(times | awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%d", s }')
say "all is as it should be, after $took s of one CPU"
[ "$took" -le "$limit" ] || die "that is more than $limit s: lower the bounds"
