#!/bin/bash
# Attests this host with tpm2-tools, openssl and curl alone, step by step as
# docs/reference/evidence.md describes it. It shows that the protocol needs no program of
# ours on the host, and is run against a software TPM by a test.
#
#   SERVICE=https://HOST:PORT CA=ca.pem HOST=compute-01 packaging/walkthrough/attest.sh
#
# TPM2TOOLS_TCTI names the TPM, as for every program of tpm2-tools; it must be one
# without resource manager (device:/dev/tpm0 with nobody else at it), because
# one command is sent as bytes. The adapter is DEVICE (mlx5_0). It measures one
# statement, so run it once in a boot. It salts no session: who sits on the bus
# between CPU and TPM is not kept out, as portcullis-agent does.
set -euo pipefail

: "${SERVICE:?https://HOST:PORT}" "${CA:?PEM file of the CA of the service}" "${HOST:?id of this host in inventory}"
SYSFS=${SYSFS:-/sys} PROCFS=${PROCFS:-/proc} DEVICE=${DEVICE:-mlx5_0} PCR=${PCR:-15}
EVENT_LOG=${EVENT_LOG:-$SYSFS/kernel/security/tpm0/binary_bios_measurements}
AGENT=walkthrough IMAGE=${IMAGE:-}
dir=$(mktemp -d)
client=
cleanup() { [ -z "$client" ] || kill "$client" 2>/dev/null || true; rm -rf "$dir"; }
trap cleanup EXIT
cd "$dir"

say() { echo "attest: $*" >&2; }
die() { say "$@"; exit 1; }

# ---- bytes -------------------------------------------------------------------

hex() { od -An -v -tx1 "$@" | tr -d ' \n'; }
unhex() { # shellcheck disable=SC2059 # the format is the bytes
  printf "$(sed 's/../\\x&/g' <<<"$1")"
}
base64() { openssl base64 -A "$@"; }
sha256() { openssl dgst -sha256 -binary "$@"; }
size() { stat -L -c %s "$1"; }
u16() { unhex "$(printf %04x "$1")"; }
u32() { unhex "$(printf %08x "$1")"; }
field() { u32 "$(size "$1")"; cat "$1"; }
labelled() { # labelled LABEL FILE...: SHA-256 over the label, a zero byte and the fields
  label=$1; shift
  { printf '%s\0' "$label"; for f; do field "$f"; done; } | sha256
}
extend() { cat "$1" "$2" | sha256; } # what a PCR of value $1 holds after $2
value() { # value KEY: a string of the JSON on standard input
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

# ---- TPM ---------------------------------------------------------------------

tidy() { tpm2_flushcontext -t; tpm2_flushcontext -l; }
owner() { # a policy session that may use the EK
  tpm2_startauthsession --policy-session -S s.ctx
  tpm2_policysecret -S s.ctx -c e >/dev/null
}
open_state() { # a policy session that holds while the agent PCR does
  tpm2_startauthsession --policy-session -S s.ctx
  tpm2_policypcr -S s.ctx -l "sha256:$PCR" >/dev/null
}
make_key() { # make_key NAME VALUE: a child of the EK, usable while the PCR holds VALUE
  tpm2_createpolicy --policy-pcr -l "sha256:$PCR" -f "$2" -L "$1.policy" >/dev/null
  owner
  tpm2_create -C ek.ctx -P session:s.ctx -G ecc256:ecdsa-sha256:null -L "$1.policy" \
    -a 'fixedtpm|fixedparent|sensitivedataorigin|noda|restricted|sign' -u "$1.2b" -r "$1.private" >/dev/null
  tidy
  owner
  tpm2_load -C ek.ctx -P session:s.ctx -u "$1.2b" -r "$1.private" -c "$1.ctx" -n "$1.name" >/dev/null
  tidy
  tail -c +3 "$1.2b" >"$1.public" # TPMT_PUBLIC, without the size before it
}
quote() { # quote KEY QUALIFYING NAME: in the session of open_state
  tpm2_quote -c "$1.ctx" -p session:s.ctx -l "sha256:$pcrs" -q "$(hex "$2")" -g sha256 -m "$3.attest" -s "$3.signature" >/dev/null
}
send() { unhex "$1" | tpm2_send | hex; }

# certify QUALIFYING: the first key certifies the second. tpm2_certify puts its own
# qualifying data into what it signs, so this command is sent as bytes (TPM 2.0
# part 3: StartAuthSession, PolicyPCR, Certify). open_certify does what needs no
# qualifying data.
open_certify() {
  tpm2_readpublic -c ak2.ctx >/dev/null # stays loaded: 80000000
  tpm2_readpublic -c ak1.ctx >/dev/null # 80000001
  none=40000007 nonce=001000000000000000000000000000000000
  r=$(send "80010000002b00000176$none$none${nonce}0000010010000b")
  session=${r:20:8}
  mask=$(printf %06x $((1 << (PCR % 8) << (8 * (2 - PCR / 8)))))
  [ "$(send "80010000001a0000017f${session}000000000001000b03$mask")" = 80010000000a00000000 ] || die "TPM2_PolicyPCR failed"
}
certify() {
  password=400000090000000000 policy=${session}0000000000
  body=8000000080000001$(printf %08x 18)$password${policy}0020$(hex "$1")0010
  r=$(send "8002$(printf %08x $((10 + ${#body} / 2)))00000148$body")
  [ "${r:12:8}" = 00000000 ] || die "TPM2_Certify failed: ${r:12:8}"
  parameters=${r:28:2 * 16#${r:20:8}}
  attest=$((2 * 16#${parameters:0:4}))
  unhex "${parameters:4:attest}" >certify.attest
  unhex "${parameters:4+attest}" >certify.signature
}

# ---- service -----------------------------------------------------------------

request() { curl --fail-with-body -sS --cacert "$CA" -H 'Content-Type: application/json' "$@"; }

# connect opens a TLS connection whose exporter value (RFC 9266) is known before
# anything is sent over it; put sends one request over it.
connect() {
  authority=${SERVICE#https://}
  rm -f to; mkfifo to
  openssl s_client -connect "$authority" -CAfile "$CA" -verify_return_error -tls1_3 -ign_eof -nocommands \
    -keymatexport EXPORTER-Channel-Binding -keymatexportlen 32 <to >from 2>errors &
  client=$!
  exec 3>to
  for _ in $(seq 1000); do
    exporter=$(sed -n 's/^ *Keying material: //p' from)
    [ -z "$exporter" ] || break
    kill -0 "$client" 2>/dev/null || die "no connection: $(cat errors)"
    sleep 0.01
  done
  unhex "$exporter" >exporter
}
put() { # put PATH BODY: answered is empty if the service waited no longer for the request
  trap '' PIPE # that the connection is gone is told below
  { printf 'PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' \
    "$1" "$authority" "$(size "$2")"; cat "$2"; } >&3 2>/dev/null || true
  trap - PIPE
  wait "$client" || true
  client=
  exec 3>&-
  answered=
  grep -aq '^HTTP/' from || return 0
  answered=yes
  grep -aq '^HTTP/1.1 200' from || die "refused: $(sed -n '/^HTTP/,$p' from)"
  sed -n '/^HTTP/,$p' from
}
# in_time COMMAND: repeats what signs for a connection and sends the request, while
# that takes longer than the service waits for the headers of a request (5 s). The
# service has seen no request then, and an open session takes one for some minutes.
in_time() {
  for _ in $(seq 10); do
    "$@"
    [ -z "$answered" ] || return 0
    say "the TPM took longer than the service waits for a request: once more"
  done
  die "the service closed the connection before the request, 10 times: the TPM takes longer than it waits for one"
}

# ---- 1. the statement, measured ----------------------------------------------

guid() { sed 's/://g; s/^/0x/' "$1"; }
hca=$SYSFS/class/infiniband/$DEVICE
log=
[ ! -s "$EVENT_LOG" ] || log=$(sha256 "$EVENT_LOG" | hex)
ports=
for p in "$hca"/ports/*; do
  gid=$(cat "$p/gids/0")
  low=$(printf '%s' "$gid" | sed 's/.*::/0:0:0:0:/; s/.*:\([^:]*:[^:]*:[^:]*:[^:]*\)$/\1/')
  g=$(IFS=:; for w in $low; do printf %04x "0x$w"; done)
  ports="$ports${ports:+,}{\"port\":${p##*/},\"guid\":\"0x$g\",\"link_layer\":\"InfiniBand\"}"
done
printf '%s' '{"version":2,"host":"'"$HOST"'","boot_id":"'"$(cat "$PROCFS/sys/kernel/random/boot_id")"'",' \
  '"collected_at":"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'","agent":"'$AGENT'","image":"'"$IMAGE"'","event_log":"'"$log"'","tools":null,' \
  '"board":{"vendor":"","name":"","serial":"","product_uuid":""},"hcas":[{"name":"'"$DEVICE"'","pci_address":"","serial":"",' \
  '"part_number":"","device_id":0,"hardware_id":0,"node_guid":"'"$(guid "$hca/node_guid")"'",' \
  '"system_image_guid":"'"$(guid "$hca/sys_image_guid")"'","base_guid":"0x0000000000000000","base_mac":"","alternate_guid":"unknown",' \
  '"psid":"'"$(cat "$hca/board_id")"'","hca_type":"'"$(cat "$hca/hca_type")"'","firmware":{"running":"'"$(cat "$hca/fw_ver")"'",' \
  '"pending":"","release_date":"","life_cycle":"unknown","secure_boot":"unknown","recovery":"unknown","attributes":null,' \
  '"security_version":null,"rollback_floor":null,"reference":null,"assurance":"none"},' \
  '"lock":{"method":"unknown","mlock":"unknown","epoch":0,"file":null,"items":null},"tokens":null,"ports":['"$ports"'],' \
  '"registers_sha256":"","spdm_sha256":"","sources":null,"unread":null}]}' >statement

printf %s "$AGENT" >agent
printf %s "$IMAGE" >image
labelled portcullis/start/2 agent image >e0
sha256 statement >s
labelled portcullis/handover/2 >sep
head -c 32 /dev/zero >v0
extend v0 e0 >v0e
extend v0e s >v1
extend v1 sep >v2
tidy
tpm2_pcrextend "$PCR:sha256=$(hex e0)"
tpm2_pcrextend "$PCR:sha256=$(hex s)"
tpm2_pcrread "sha256:$PCR" -o now >/dev/null
cmp -s now v1 || die "PCR $PCR does not hold this statement alone: reboot the host"
say "statement measured, SHA-256 $(hex s)"

# ---- 2. EK and two keys below it ---------------------------------------------

tpm2_nvread 0x01c0000a -o ek.der # certificate of the ECC P-256 EK (template L-2)
tpm2_createek -c ek.ctx -G ecc -u ek.2b
tidy
make_key ak1 v1
make_key ak2 v2

# ---- 3. the session ----------------------------------------------------------

printf '%s' '{"host":"'"$HOST"'","ek":{"kind":"ecc-p256","certificates":["'"$(base64 <ek.der)"'"]},' \
  '"start":{"agent":"'$AGENT'","image":"'"$IMAGE"'"},"statement_digests":["'"$(base64 <s)"'"],' \
  '"ak1_public":"'"$(base64 <ak1.public)"'","ak2_public":"'"$(base64 <ak2.public)"'"}' >request.json
request -X POST --data-binary @request.json "$SERVICE/v1/attest/sessions" >session.json
value id <session.json | tr -d '\n' >id
value nonce <session.json | openssl base64 -d -A >nonce
value credential_blob <session.json | openssl base64 -d -A >blob
value encrypted_secret <session.json | openssl base64 -d -A >seed
pcrs=$(sed -n 's/.*"pcrs":\[\([0-9,]*\)\].*/\1/p' session.json)
say "session $(cat id), quote over PCRs $pcrs"

# ---- 4. the credential -------------------------------------------------------

{ unhex badcc0de00000001; u16 "$(size blob)"; cat blob; u16 "$(size seed)"; cat seed; } >credential # the form tpm2-tools read
owner
tpm2_activatecredential -c ak1.ctx -C ek.ctx -P session:s.ctx -i credential -o secret >/dev/null
tidy

# ---- 5. the evidence ---------------------------------------------------------

: >fields
values=
for n in ${pcrs//,/ }; do
  tpm2_pcrread "sha256:$n" -o value >/dev/null
  field value >>fields
  values="$values${values:+,}\"$(base64 <value)\""
done
sha256 fields >pcrhash
: >eventlog
[ -z "$log" ] || cat "$EVENT_LOG" >eventlog
present() {
  tidy
  open_certify
  open_state
  connect # from here on the service waits for the request
  labelled portcullis/quote/2 id nonce s exporter ak1.name >q
  quote ak1 q quote
  certify q
  labelled portcullis/evidence/2 statement quote.attest quote.signature certify.attest certify.signature pcrhash eventlog >body
  labelled portcullis/proof/2 id body >message
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(hex secret)" -binary message >proof
  printf '%s' '{"statement":"'"$(base64 <statement)"'","quote":"'"$(base64 <quote.attest)"'","signature":"'"$(base64 <quote.signature)"'",' \
    '"certify":"'"$(base64 <certify.attest)"'","certify_signature":"'"$(base64 <certify.signature)"'","pcr_values":['"$values"'],' \
    '"event_log":"'"$(base64 <eventlog)"'","proof":"'"$(base64 <proof)"'"}' >evidence.json
  put "/v1/attest/sessions/$(cat id)/evidence" evidence.json >result
}
in_time present
tidy
value status_token <result | tr -d '\n' >token
value nonce <result | openssl base64 -d -A >nonce2
say "evidence accepted"

# ---- 6. the hand-over --------------------------------------------------------

tpm2_pcrextend "$PCR:sha256=$(hex sep)"
seal() {
  tidy
  open_state
  connect
  labelled portcullis/seal/2 id nonce2 s exporter ak2.name >q2
  quote ak2 q2 seal
  printf '%s' '{"quote":"'"$(base64 <seal.attest)"'","signature":"'"$(base64 <seal.signature)"'"}' >seal.json
  put "/v1/attest/sessions/$(cat id)/seal" seal.json >sealed
}
in_time seal
tidy
say "sealed: this host attests nothing more before it is rebooted"
request -H "Authorization: Bearer $(cat token)" "$SERVICE/v1/attest/status"

# ---- 7. the result, as whoever is shown it verifies it ---------------------------

plain() { # base64url without padding
  s=$(tr '_-' '/+')
  while [ $((${#s} % 4)) -ne 0 ]; do s=$s=; done
  openssl base64 -d -A <<<"$s"
}
integer() { # of X.690, from 64 hex digits
  h=$(sed 's/^\(00\)*//' <<<"$1")
  case $h in [89a-f]*) h=00$h ;; esac
  printf '02%02x%s' $((${#h} / 2)) "$h"
}

value result <sealed | tr -d '\n' >result.jwt
[ -s result.jwt ] || { say "the service signs no attestation results"; exit 0; }
IFS=. read -r header claims signature <result.jwt || true
header_text=$(plain <<<"$header")
[ "$(value alg <<<"$header_text")" = ES256 ] && [ "$(value typ <<<"$header_text")" = eat+jwt ] || die "no attestation result: $header_text"
kid=$(value kid <<<"$header_text")
curl --fail -sS --cacert "$CA" "$SERVICE/.well-known/jwks.json" | tr '{' '\n' | grep -F "\"kid\":\"$kid\"" >jwk || die "no key $kid is published"
{ unhex 3059301306072a8648ce3d020106082a8648ce3d03010703420004; value x <jwk | plain; value y <jwk | plain; } >key.der
rs=$(plain <<<"$signature" | hex)
[ ${#rs} -eq 128 ] || die "the signature is not 64 bytes"
body=$(integer "${rs:0:64}")$(integer "${rs:64}")
unhex "30$(printf %02x $((${#body} / 2)))$body" >result.signature
printf %s "$header.$claims" | openssl dgst -sha256 -verify <(openssl pkey -pubin -inform DER -in key.der) -signature result.signature >&2
plain <<<"$claims" >claims.json
now=$(date +%s)
number() { sed -n "s/.*\"$1\":\([0-9]*\),.*/\1/p" claims.json; }
[ "$(value eat_profile <claims.json)" = urn:portcullis:attestation-result:1 ] || die "another profile"
[ "$(value sub <claims.json)" = "$HOST" ] || die "about another host"
[ "$now" -lt "$(number exp)" ] && [ "$now" -ge $(($(number nbf) - 60)) ] || die "not in force now"
say "result of $(value sub <claims.json) by $(value iss <claims.json), verified: $(sed 's/.*"ear_verifier_id":{[^}]*},"ear_status":"\([^"]*\)".*/\1/' claims.json)"
