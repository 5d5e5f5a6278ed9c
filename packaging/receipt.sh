#!/bin/sh
# Verifies a receipt with openssl and jq: receipt.sh FILE PUBKEY [TENANT]
# It ends as "portcullis receipt verify" does: 0 isolated, 1 a packet passes, 2 refused, 7 not proven.
set -u
refuse() { echo "receipt.sh: $1" >&2; exit 2; }
[ $# -eq 2 ] || [ $# -eq 3 ] || refuse "want FILE PUBKEY [TENANT]"
dir=$(mktemp -d) || refuse "no directory for temporary files"
trap 'rm -rf "$dir"' EXIT

type=application/vnd.in-toto+json
jq -es --arg type "$type" 'length == 1 and .[0].payloadType == $type and (.[0].signatures | length) == 1' "$1" >/dev/null 2>&1 ||
  refuse "$1 is no envelope with one signature and a payload of type $type"
jq -r .payload "$1" | base64 -d >"$dir/payload" 2>/dev/null || refuse "the payload is not base64"
jq -r '.signatures[0].sig' "$1" | base64 -d >"$dir/sig" 2>/dev/null || refuse "the signature is not base64"
{
  printf 'DSSEv1 %d %s %d ' "${#type}" "$type" "$(wc -c <"$dir/payload")"
  cat "$dir/payload"
} >"$dir/signed"
openssl pkeyutl -verify -pubin -inkey "$2" -rawin -in "$dir/signed" -sigfile "$dir/sig" >/dev/null 2>&1 ||
  refuse "$2 did not sign it, or it was altered"

verdict=$(jq -er --arg tenant "${3-}" '
  def counts($issued): (.at | fromdateiso8601) as $at |
    (.max_age_seconds | type) == "number" and .max_age_seconds >= 1 and $at <= $issued and now <= $at + .max_age_seconds;
  ._type as $type | .predicateType as $kind | .subject as $subject | .predicate as $p |
  ($p.issued.at | fromdateiso8601) as $issued |
  ($p.parties | map(select(.tenant and (($p.tenant // "") == "" or .name == $p.tenant)))) as $about |
  ($about | map({key: .name, value: true}) | from_entries) as $named |
  ($p.parties | map(select(.tenant and .found != .declared) | {key: .name, value: true}) | from_entries) as $lacks |
  if $type != "https://in-toto.io/Statement/v1" or $kind != "urn:portcullis:isolation-receipt:1" then error("it is another statement")
  elif $subject != [{name: "fabric-tables", digest: {sha256: $p.reading.digest}}] then error("its subject is not the tables that were read")
  elif $tenant != "" and $p.tenant != $tenant then error("it is about another tenant")
  elif $issued > now + 60 then error("it was issued after now")
  elif ([$p.issued, $p.reading, $p.members, $p.topology, $p.keys] + $p.attestations | all(counts($issued)) | not) then error("something in it does not count any more")
  elif ([$p.members.ports[].host] | unique) != [$p.attestations[].host] then error("attestation results are missing")
  elif [range($p.parties | length) as $i | range($i + 1; $p.parties | length) as $j | [$p.parties[$i].name, $p.parties[$j].name] |
      select($named[.[0]] or $named[.[1]])] != [$p.pairs[] | [.a, .b]] then error("it does not say something of each pair")
  elif any($p.pairs[]; .verdict == "isolated" and ($lacks[.a] or $lacks[.b])) then error("a pair cannot be isolated")
  elif any($p.pairs[]; .verdict == "leaks") then "leaks"
  elif $about == [] or any($about[]; .found != .declared) or any($p.pairs[]; .verdict != "isolated") then "unknown"
  else "isolated" end
' "$dir/payload" 2>"$dir/error") || refuse "$(cat "$dir/error")"
[ "$verdict" = "$(jq -r .predicate.verdict "$dir/payload")" ] || refuse "its verdict is not that of its pairs"
echo "$verdict"
case $verdict in
  isolated) exit 0 ;;
  leaks) exit 1 ;;
  *) exit 7 ;;
esac
