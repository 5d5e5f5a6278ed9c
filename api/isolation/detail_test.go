package isolation_test

import (
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"portcullis/api/isolation"
	"portcullis/api/receipt"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

var readAt = time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)

func (b *bed) examine(tenant string) *isolation.Detail {
	b.t.Helper()
	q := v1.IsolationQuery{Tenant: tenant, Membership: true}
	return b.prove(q, isolation.Span{Begun: readAt, Ended: readAt.Add(time.Second)}).Examine(q)
}

// receipt signs and verifies what was found.
func (b *bed) receipt(d *isolation.Detail) *receipt.Predicate {
	b.t.Helper()
	now := readAt.Add(time.Minute)
	always := receipt.From(now, time.Hour)
	f := receipt.Facts{
		Issued: now, MaxAge: time.Hour, Report: d.Report, Pairs: d.Pairs, Ports: d.Ports, Digest: d.Digest.String(), ReadingMaxAge: time.Hour,
		Members: always, Topology: receipt.Topology{Dated: always}, Keys: receipt.Keys{Dated: always, Epochs: []receipt.Epoch{{Kind: "m-key"}}},
		Attestations: map[string]receipt.Judged{},
	}
	for _, p := range d.Ports {
		f.Attestations[p.Host] = receipt.Judged{Dated: always, Status: result.None}
	}
	p, err := receipt.New(f)
	if err != nil {
		b.t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	data, err := receipt.Sign(p, key)
	if err != nil {
		b.t.Fatal(err)
	}
	public, err := receipt.NewPublicKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := receipt.Verify(data, []receipt.PublicKey{public}, now)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Predicate
}

// TestExamine: each pair has its verdict, each port its P_Keys, and a receipt of it says the same.
func TestExamine(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	clean := b.examine("")
	want := []v1.IsolationPair{
		{A: isolation.NoTenant, B: "blue", Verdict: v1.Isolated, Held: v1.HeldByEach},
		{A: isolation.NoTenant, B: "red", Verdict: v1.Isolated, Held: v1.HeldByEach},
		{A: "blue", B: "red", Verdict: v1.Isolated, Held: v1.HeldByEach},
	}
	if !slices.Equal(clean.Pairs, want) {
		t.Errorf("pairs %+v, want %+v", clean.Pairs, want)
	}
	if len(clean.Ports) != 4 {
		t.Fatalf("ports %+v, want those of two tenants", clean.Ports)
	}
	if p := clean.Ports[0]; p.Party != "blue" || p.Host != "h2" || !p.Found || p.Place.IsZero() || !slices.Equal(p.PKeys, []ib.PKey{blueKey}) {
		t.Errorf("the first port is %+v", p)
	}
	if got := b.receipt(clean); got.Verdict != v1.Isolated {
		t.Errorf("the receipt says %q", got.Verdict)
	}
	red := b.examine("red")
	if len(red.Ports) != 2 || len(red.Pairs) != 2 || red.Digest != clean.Digest {
		t.Errorf("of red alone: %+v", red)
	}
	if got := b.receipt(red); got.Verdict != v1.Isolated || got.Tenant != "red" {
		t.Errorf("the receipt of red says %q", got.Verdict)
	}

	leaf, port := b.leaf("h1")
	b.stray("h1", 0, blueKey)
	b.stray(leaf, mad.PKeyTableMod(port, 0), blueKey)
	leaks := b.examine("")
	if leaks.Digest == clean.Digest {
		t.Error("other tables have the same digest")
	}
	if p := leaks.Pairs[2]; p.Verdict != v1.Leaks || p.Held != "" {
		t.Errorf("pair %+v, want a leak", p)
	}
	if got := b.receipt(leaks); got.Verdict != v1.Leaks {
		t.Errorf("the receipt says %q", got.Verdict)
	}
}

// TestExamineMissing: of a tenant with a port that was not found, no pair is isolated.
func TestExamineMissing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if err := b.fabric.PowerOff("h1"); err != nil {
		t.Fatal(err)
	}
	d := b.examine("")
	for _, p := range d.Pairs {
		if p.Verdict == v1.Isolated && (p.A == "red" || p.B == "red") {
			t.Errorf("pair %+v", p)
		}
	}
	if got := b.receipt(d); got.Verdict != v1.IsolationUnknown {
		t.Errorf("the receipt says %q", got.Verdict)
	}
}
