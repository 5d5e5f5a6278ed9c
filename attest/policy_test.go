package attest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/attest"
)

func readPEM(t *testing.T) func(string) ([]byte, error) {
	l := newLab(t)
	return func(name string) ([]byte, error) {
		switch name {
		case "vendors.pem":
			return l.vendor.PEM(), nil
		case "empty.pem":
			return []byte("nothing here"), nil
		}
		return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	}
}

func TestLoadPolicy(t *testing.T) {
	t.Parallel()
	got, err := attest.LoadPolicy([]byte(`
ek:
  mode: pinned+chain
  roots: [vendors.pem]
  expiry: strict
  deny: [`+strings.Repeat("Ab", 32)+`]
pcrs: [0, 1, 2, 3, 4, 5, 6, 7, 9]
agent_pcr: 14
channel: none
session_life: 60s
seal_life: 5m
assurance: none
require_lock: false
starts: [{agent: v1, image: prov-7}]
tpm_firmware: [{maker: "id:54455354", model: attesttest, allow: ["0001000200030004"]}]
statement_age: 5m
clock_skew: 0s
firmware:
  - {psid: MT_0000000838, min: 28.43.1014}
`), readPEM(t))
	if err != nil {
		t.Fatal(err)
	}
	if got.Roots == nil || got.Intermediates == nil || len(got.Version) != 16 {
		t.Errorf("got roots %v, intermediates %v, version %q", got.Roots, got.Intermediates, got.Version)
	}
	got.Roots, got.Intermediates, got.Version = nil, nil, ""
	want := &attest.Policy{
		Mode: attest.EKPinnedChain, Expiry: attest.ExpiryStrict, Denied: map[string]bool{strings.Repeat("ab", 32): true},
		PCRs: []int{0, 1, 2, 3, 4, 5, 6, 7, 9}, AgentPCR: 14, Channel: attest.ChannelNone,
		SessionLife: time.Minute, SealLife: 5 * time.Minute, StatementAge: 5 * time.Minute,
		FirmwareFloors: []attest.FirmwareFloor{{PSID: "MT_0000000838", Min: "28.43.1014"}},
		Starts:         []attest.Start{{Agent: "v1", Image: "prov-7"}},
		TPMFirmware:    []attest.TPMFirmware{{Maker: "id:54455354", Model: "attesttest", Allow: []string{"0001000200030004"}}},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if w := got.Waived(); len(w) != 2 || len(attest.DefaultPolicy().Waived()) != 0 {
		t.Errorf("got waivers %q, want both, and none by default", w)
	}
}

func TestLoadPolicyRefuses(t *testing.T) {
	t.Parallel()
	roots := "ek: {roots: [vendors.pem]}\n"
	for _, tc := range []struct{ name, yaml, want string }{
		{"nothing", "", "none are configured"},
		{"comments alone", "# roots: later\n\n", "none are configured"},
		{"two documents", roots + "---\n" + roots, "more than one document"},
		{"unknown key", roots + "pcr: [1]\n", "line 2"},
		{"wrong type", roots + "agent_pcr: fifteen\n", "line 2"},
		{"missing file", "ek: {roots: [gone.pem]}", "gone.pem"},
		{"no PEM", "ek: {roots: [empty.pem]}", "no certificate in PEM"},
		{"mode", "ek: {mode: chain, roots: [vendors.pem]}", `EK mode "chain"`},
		{"expiry", "ek: {expiry: never, roots: [vendors.pem]}", `EK expiry "never"`},
		{"deny", "ek: {deny: [abc], roots: [vendors.pem]}", "64 hexadecimal digits"},
		{"agent PCR of IMA", roots + "agent_pcr: 10", "agent PCR 10"},
		{"no PCRs", roots + "pcrs: []", "lack PCR 0"},
		{"a PCR of the firmware missing", roots + "pcrs: [0, 1, 2, 4, 5, 6, 7]", "lack PCR 3"},
		{"a PCR anybody can reset", roots + "pcrs: [0, 1, 2, 3, 4, 5, 6, 7, 16]", "PCR 16"},
		{"PCR twice", roots + "pcrs: [1, 1]", "ascending"},
		{"agent PCR in the list", roots + "pcrs: [7, 15]", "always quoted"},
		{"PCR 24", roots + "pcrs: [24]", "PCR 24"},
		{"channel", roots + "channel: if-present", "channel binding"},
		{"session life", roots + "session_life: 1h", "session life"},
		{"statement age", roots + "statement_age: 0s", "statement age"},
		{"clock skew", roots + "clock_skew: 1h", "clock skew"},
		{"seal life", roots + "seal_life: 2h", "seal life"},
		{"assurance", roots + "assurance: G4", "is not one of"},
		{"start without agent", roots + "starts: [{image: x}]", "agent: empty"},
		{"TPM firmware", roots + "tpm_firmware: [{maker: a, model: b, allow: [1.2]}]", "TPM firmware"},
		{"TPM firmware without versions", roots + "tpm_firmware: [{maker: a, model: b}]", "at least one version"},
		{"firmware", roots + "firmware: [{psid: A, min: new}]", "firmware minimum"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, err := attest.LoadPolicy([]byte(tc.yaml), readPEM(t))
			if err == nil || p != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want an error with %q", p, err, tc.want)
			}
		})
	}
}
