#!/bin/sh
# Verifies a receipt with openssl and jq: receipt.sh FILE PUBKEY [TENANT [PROOF]]
# An empty TENANT is any. Without PROOF, FILE.tlog-proof is the proof that it is in the log of receipts, if there is such a file.
# It ends as "portcullis receipt verify" does: 0 isolated, 1 a packet passes, 2 refused, 7 not proven.
set -u
refuse() { echo "receipt.sh: $1" >&2; exit 2; }
[ $# -ge 2 ] && [ $# -le 4 ] || refuse "want FILE PUBKEY [TENANT [PROOF]]"
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

again() { printf %s "$1" | base64 -d 2>/dev/null | base64 -w0; }
sha256() { openssl dgst -sha256 -binary; }
count() { case $1 in '' | *[!0-9]* | 0?* | ???????????????????*) refuse "$proof has \"$1\" in place of a number" ;; esac; }

# logged refuses unless $proof shows that the receipt in $1 is in the log of which the key in $2 signed the head.
logged() {
  {
    IFS= read -r version && read -r _ index
    while IFS= read -r hash && [ -n "$hash" ]; do printf '%s\n' "$hash"; done >"$dir/path"
    IFS= read -r origin && read -r size && read -r root && read -r _ && read -r _ _ sig
  } <"$proof" || refuse "$proof is no proof"
  # What is not written exactly as it was read is refused.
  {
    printf 'c2sp.org/tlog-proof@v1\nindex %s\n' "$index"
    while IFS= read -r hash; do
      case $hash in *[!=]=) again "$hash" && echo ;; esac
    done <"$dir/path"
    printf '\n%s\n%s\n%s\n\n— %s %s\n' "$origin" "$size" "$(again "$root")" "$origin" "$(again "$sig")"
  } | cmp -s - "$proof" || refuse "$proof is no proof of the form ${version:-that is wanted}, or was altered"
  count "$index" && count "$size"
  [ "$index" -lt "$size" ] || refuse "$proof is about leaf $index of $size"

  printf '%s\n%s\n%s\n' "$origin" "$size" "$root" >"$dir/head"
  printf %s "$sig" | base64 -d >"$dir/note"
  { printf '%s\n\001' "$origin"; openssl pkey -pubin -in "$2" -outform DER | tail -c 32; } | sha256 | head -c 4 >"$dir/keyid"
  head -c 4 "$dir/note" | cmp -s - "$dir/keyid" || refuse "$2 did not sign the head of the log"
  tail -c +5 "$dir/note" >"$dir/headsig"
  openssl pkeyutl -verify -pubin -inkey "$2" -rawin -in "$dir/head" -sigfile "$dir/headsig" >/dev/null 2>&1 ||
    refuse "$2 did not sign the head of the log, or it was altered"

  # From the leaf to the root, as in RFC 9162, section 2.1.3.2.
  { printf '\000'; sha256 <"$1"; } | sha256 >"$dir/node"
  last=$((size - 1))
  while IFS= read -r hash; do
    [ "$last" -gt 0 ] || refuse "$proof has more hashes than the path has"
    printf %s "$hash" | base64 -d >"$dir/sibling"
    if [ $((index & 1)) -eq 1 ] || [ "$index" -eq "$last" ]; then
      { printf '\001'; cat "$dir/sibling" "$dir/node"; } | sha256 >"$dir/parent"
      while [ $((index & 1)) -eq 0 ] && [ "$index" -gt 0 ]; do
        index=$((index >> 1)) last=$((last >> 1))
      done
    else
      { printf '\001'; cat "$dir/node" "$dir/sibling"; } | sha256 >"$dir/parent"
    fi
    mv "$dir/parent" "$dir/node"
    index=$((index >> 1)) last=$((last >> 1))
  done <"$dir/path"
  [ "$last" -eq 0 ] && [ "$(base64 -w0 <"$dir/node")" = "$root" ] || refuse "$proof is not about this receipt, or was altered"
}
proof=${4-}
if [ -z "$proof" ] && [ -e "$1.tlog-proof" ]; then proof=$1.tlog-proof; fi
if [ -n "$proof" ]; then logged "$1" "$2"; fi

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
  elif $tenant != "" and ($p.tenant != $tenant or ($p.host // "") != "") then error("it is about another tenant, or one host alone")
  elif ($p.host // "") != "" and (($p.tenant // "") == "" or ([$p.members.ports[].host] | unique) != [$p.host]) then error("it lists other hosts")
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
