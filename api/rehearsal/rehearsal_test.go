package rehearsal_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/rehearsal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/escrow"
)

const id = "00112233445566778899aabbccddeeff"

// rig is a store with a check key, and a kit of it.
type rig struct {
	t    *testing.T
	now  time.Time
	kit  escrow.Contents
	fail error // of the key
	book rehearsal.Book
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	check, err := vault.DrawCheckKey(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	r.kit = escrow.Contents{Fabric: id, Made: r.now.Add(-48 * time.Hour), Check: check, Records: []keys.Record{
		{Kind: keys.MKey, GUID: 1, Current: keys.Held{Key: keys.New(keystest.Planted(1)), Epoch: 1, Origin: keys.OriginRandom}},
	}}
	clock := func() time.Time { return r.now }
	r.book = rehearsal.Book{Store: store.New(memory.New(clock), ""), Now: clock, Check: func() (string, vault.CheckKey, error) { return id, check, r.fail }}
	return r
}

// proof returns the proof of a kit, which was compared with a list of some time ago.
func (r *rig) proof(ago time.Duration) v1.KeyRehearsal {
	r.t.Helper()
	list := r.kit
	list.Made = r.now.Add(-ago)
	p, err := r.kit.Prove(list.Digests())
	if err != nil {
		r.t.Fatal(err)
	}
	return v1.KeyRehearsal{Fabric: p.Fabric, KitMade: p.KitMade, Listed: p.Listed, Keys: p.Keys, Devices: p.Devices, List: p.List, Seal: p.Seal}
}

func (r *rig) record(p v1.KeyRehearsal) (*v1.KeyRehearsed, string) {
	r.t.Helper()
	out, err := r.book.Record(r.t.Context(), "olga", p)
	if err == nil {
		return out, ""
	}
	e, ok := errors.AsType[*refusal.Error](err)
	if !ok || e.Hint == "" {
		r.t.Fatalf("an error without a cure: %v", err)
	}
	return nil, e.Code
}

func (r *rig) last() rehearsal.Record {
	r.t.Helper()
	last, err := rehearsal.Last(r.t.Context(), r.book.Store)
	if err != nil {
		r.t.Fatal(err)
	}
	return last
}

// TestRecord: a proof is recorded and audited, a newer one replaces it, and an older one does not.
func TestRecord(t *testing.T) {
	r := newRig(t)
	if last := r.last(); !last.Listed.IsZero() {
		t.Fatalf("without a rehearsal: %+v", last)
	}
	out, code := r.record(r.proof(2 * time.Hour))
	if code != "" || out.Keys != 1 || out.Devices != 1 || out.By != "olga" || !out.Listed.Equal(r.now.Add(-2*time.Hour)) {
		t.Fatalf("recorded %+v, refused %q", out, code)
	}
	if _, code := r.record(r.proof(3 * time.Hour)); code != "rehearsal_older" {
		t.Errorf("an older one: %q", code)
	}
	if _, code := r.record(r.proof(2 * time.Hour)); code != "" {
		t.Errorf("the same again: %q", code)
	}
	r.now = r.now.Add(time.Hour)
	if _, code := r.record(r.proof(-time.Minute)); code != "" || !r.last().Listed.Equal(r.now.Add(time.Minute)) {
		t.Errorf("a newer one: %q, the last is %+v", code, r.last())
	}
	snap, err := r.book.Store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	head, err := audit.Latest(t.Context(), snap)
	if err != nil || head.Seq != 3 {
		t.Errorf("audit log: %+v, %v", head, err)
	}
}

// TestRefused: what proves nothing of this service is refused with a cure, and changes nothing.
func TestRefused(t *testing.T) {
	r := newRig(t)
	other := newRig(t)
	var err error
	if other.kit.Check, err = vault.DrawCheckKey(rand.NewChaCha8([32]byte{2})); err != nil {
		t.Fatal(err)
	}
	old := newRig(t)
	old.kit.Fabric = strings.Repeat("0", 32)
	altered := r.proof(time.Hour)
	altered.Listed = r.now
	for name, test := range map[string]struct {
		proof v1.KeyRehearsal
		want  string
	}{
		"of another store":     {other.proof(time.Hour), "rehearsal_foreign"},
		"altered":              {altered, "rehearsal_foreign"},
		"none":                 {v1.KeyRehearsal{}, "rehearsal_foreign"},
		"of an earlier vault":  {old.proof(time.Hour), "rehearsal_old_vault"},
		"of a list to be made": {r.proof(-time.Hour), "rehearsal_early"},
	} {
		if _, code := r.record(test.proof); code != test.want {
			t.Errorf("%s: %q, want %q", name, code, test.want)
		}
	}
	r.fail = errors.New("no root")
	if _, code := r.record(r.proof(time.Hour)); code != v1.CodeUnavailable {
		t.Errorf("the key does not open: %q", code)
	}
	if last := r.last(); !last.Listed.IsZero() {
		t.Errorf("recorded: %+v", last)
	}
}
