package attest_test

import (
	"crypto/x509"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/ek"
)

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range attesttest.Attacks() {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			v := tc.Verdict()
			if v.OK || v.Code != tc.Want || v.Detail == "" {
				t.Errorf("got OK %v, reason %s, detail %q; want reason %s", v.OK, v.Code, v.Detail, tc.Want)
			}
		})
	}
}

func TestVerifyAccepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []attesttest.Attack{
		{Name: "as it should be"},
		{Name: "second statement of the boot", Host: func(a *attesttest.Attempt) { a.Host.MeasureBytes([]byte("earlier")) }},
		{Name: "clock that went back", Host: func(a *attesttest.Attempt) { a.Host.Boot.Safe = false }},
		{Name: "system image GUID not declared", Service: func(a *attesttest.Attempt) { a.Expected.HCAs[0].SystemImageGUID = 0 }},
		{Name: "Ethernet port besides", Host: func(a *attesttest.Attempt) {
			ports := &a.Host.Statement.HCAs[0].Ports
			*ports = append(*ports, attest.Port{Num: 3, LinkLayer: attest.LinkEthernet})
		}},
		{Name: "firmware at the minimum", Host: func(a *attesttest.Attempt) {
			a.Policy.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000838", Min: "28.43.1014"}}
		}},
		{Name: "behind a TLS proxy, by policy", Host: func(a *attesttest.Attempt) {
			a.Policy.Channel, a.Channel = attest.ChannelNone, nil
		}},
	} {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			if v := tc.Verdict(); !v.OK {
				t.Errorf("refused: %s: %s", v.Code, v.Detail)
			}
		})
	}
}

func TestVerifyFacts(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ch, s := l.begin()
	ev, err := l.host.Answer(s, l.channel)
	if err != nil {
		t.Fatal(err)
	}
	v := attest.Verify(attesttest.Epoch, ch, l.channel, ev, l.host.Expected(), l.policy)
	if !v.OK {
		t.Fatalf("refused: %s: %s", v.Code, v.Detail)
	}
	pcrs := v.Facts.PCRs
	got := v.Facts
	got.PCRs, got.PCRDigest = nil, ""
	var issuers []string
	for _, ca := range []*x509.Certificate{l.vendor.Issuer(), l.vendor.Root()} {
		d, err := ek.Digest(ca.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		issuers = append(issuers, d)
	}
	want := attest.Facts{
		EKIssuers: issuers,
		Host:      "compute-01", Session: s.ID, EKDigest: l.host.EKDigest(), AKName: hex.EncodeToString(l.host.AK1Name()), AK2Name: hex.EncodeToString(l.host.AK2Name()),
		TPM: ek.Model{Maker: "id:54455354", Name: "attesttest", Version: "id:00010000"}, Start: l.host.Start(),
		Boot: l.host.Boot, TPMFirmware: "0001000200030004",
		StatementDigest: hex.EncodeToString(attest.StatementDigest(ev.Statement)),
		Statement:       &l.host.Statement, PolicyVersion: "default", Reference: "default/1", Verified: attesttest.Epoch,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("facts (-got +want):\n%s", diff)
	}
	if len(pcrs) != len(attesttest.Demanded()) || pcrs[8].Index != 15 || pcrs[8].Value != hex.EncodeToString(l.host.Registers[15]) {
		t.Errorf("got registers %v", pcrs)
	}
}

// TestVerifyInParts: each part is reported once it was verified, up to the one that is refused, and that changes no verdict.
func TestVerifyInParts(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ch, s := l.begin()
	ev, err := l.host.Answer(s, l.channel)
	if err != nil {
		t.Fatal(err)
	}
	broken := *ev
	broken.Quote = ev.Quote[:5]
	broken.Proof = attest.Proof(ch.Secret, s.ID, &broken)
	stranger := *ev
	stranger.Proof = nil
	elsewhere := l.host.Expected()
	elsewhere.HCAs[0].NodeGUID++
	for name, c := range map[string]struct {
		ev   *attest.Evidence
		exp  attest.Expected
		want []attest.Part
	}{
		"accepted":         {ev, l.host.Expected(), attest.Parts()},
		"no proof":         {&stranger, l.host.Expected(), attest.Parts()[:1]},
		"half a quote":     {&broken, l.host.Expected(), attest.Parts()[:2]},
		"another adapter":  {ev, elsewhere, attest.Parts()[:5]},
		"nothing is there": {nil, l.host.Expected(), attest.Parts()[:1]},
	} {
		var got []attest.Part
		v := attest.VerifyInParts(attesttest.Epoch, ch, l.channel, c.ev, c.exp, l.policy, func(p attest.Part) { got = append(got, p) })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if d := cmp.Diff(attest.Verify(attesttest.Epoch, ch, l.channel, c.ev, c.exp, l.policy).Code, v.Code); d != "" || v.OK != (name == "accepted") {
			t.Errorf("%s: verdict %s %s", name, v.Code, d)
		}
	}
}

// TestQuoteEveryPrefix cuts the quote and the signature at every length: none
// is accepted and none panics.
func TestQuoteEveryPrefix(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ch, s := l.begin()
	whole, err := l.host.Answer(s, l.channel)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole.Quote {
		ev := *whole
		ev.Quote = whole.Quote[:n]
		if ev.Signature, err = attesttest.Sign(l.host.AK1, ev.Quote); err != nil {
			t.Fatal(err)
		}
		ev.Proof = attest.Proof(ch.Secret, s.ID, &ev)
		if v := attest.Verify(attesttest.Epoch, ch, l.channel, &ev, l.host.Expected(), l.policy); v.Code != attest.ReasonParse {
			t.Errorf("quote cut at %d: got %q, want %s", n, v.Code, attest.ReasonParse)
		}
	}
	for n := range whole.Signature {
		ev := *whole
		ev.Signature = whole.Signature[:n]
		ev.Proof = attest.Proof(ch.Secret, s.ID, &ev)
		if v := attest.Verify(attesttest.Epoch, ch, l.channel, &ev, l.host.Expected(), l.policy); v.Code != attest.ReasonParse {
			t.Errorf("signature cut at %d: got %q, want %s", n, v.Code, attest.ReasonParse)
		}
	}
}
