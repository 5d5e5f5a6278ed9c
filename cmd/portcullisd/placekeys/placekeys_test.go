package placekeys

import (
	"crypto/rand"
	"errors"
	"testing"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

var place = ib.Place{Switch: 0x10, Port: 2}

func newRoot(t *testing.T) vault.Root {
	t.Helper()
	secret := make([]byte, vault.SecretSize)
	_, _ = rand.Read(secret) // it never fails
	root, err := vault.NewRoot("root", secret)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// Before the Subnet Manager has run, and where devices get no keys, no place has one.
func TestWithoutKeys(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	none := func() ([]sm.Fact, error) { return nil, nil }
	for name, opens := range map[string]func() (vault.Root, error){"no keys": nil, "not yet": func() (vault.Root, error) { return root, nil }} {
		b, err := Open(none, opens)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !b.At(place, 0x31).IsZero() || !b.At(ib.Place{}, 0x31).IsZero() || len(b.Epochs) != 1 {
			t.Errorf("%s: there is a key", name)
		}
	}
	broken := errors.New("no disk")
	if _, err := Open(func() ([]sm.Fact, error) { return nil, broken }, func() (vault.Root, error) { return root, nil }); !errors.Is(err, broken) {
		t.Errorf("facts that are not read: %v", err)
	}
	if _, err := Open(none, func() (vault.Root, error) { return root, broken }); !errors.Is(err, broken) {
		t.Errorf("a root that is not read: %v", err)
	}
}

// A key is that of its place, and a switch's that of the place in front of it.
func TestAt(t *testing.T) {
	t.Parallel()
	const own, sw, host = 0x31, 0x10, 0x41
	root := newRoot(t)
	inner := &driver.Memory{}
	s, err := keystore.Open(inner, root, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var facts []sm.Fact
	for i, r := range []keys.Record{{GUID: own}, {GUID: sw}, {GUID: host, Place: place}} {
		r.Kind, r.Current = keys.MKey, keys.Held{Key: keys.New(0x1000 + uint64(i)), Epoch: 7, Origin: keys.OriginRandom}
		facts = append(facts, sm.KeyFactOf(r))
	}
	facts = append(facts, sm.Fact{Kind: sm.FactBehind, GUID: own, Port: 1, Behind: sw})
	if err := s.Save(facts); err != nil {
		t.Fatal(err)
	}
	b, err := Open(func() ([]sm.Fact, error) { return inner.Load() }, func() (vault.Root, error) { return root, nil })
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[ib.Place]uint64{{}: 0x1000, {Switch: own, Port: 1}: 0x1001, place: 0x1002, {Switch: sw, Port: 9}: 0} {
		if got := b.At(at, own); got != ib.NewMKey(want) {
			t.Errorf("at %v there is another key than wanted", at)
		}
	}
	if b.Epochs[0].Epoch != 7 {
		t.Errorf("the epoch is %d", b.Epochs[0].Epoch)
	}
}
