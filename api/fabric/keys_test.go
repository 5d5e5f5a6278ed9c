package fabric

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"portcullis/api/store/storetest"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// TestKeysReachTheStoreSealed keeps keys in etcd, and scans its files for them.
func TestKeysReachTheStoreSealed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	l := New(Options{Store: storetest.OpenDir(t, dir), Log: storetest.Quiet()})
	secret := make([]byte, vault.SecretSize)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(secret)
	root, err := vault.NewRoot("a", secret)
	if err != nil {
		t.Fatal(err)
	}
	s, err := keystore.Open(l, root, rand.NewChaCha8([32]byte{2}))
	if err != nil {
		t.Fatal(err)
	}
	var facts []sm.Fact
	for n := range 120 {
		h := keys.Held{Key: keys.New(keystest.Planted(n)), Epoch: 1, Origin: keys.OriginRandom, Since: time.Unix(7, 0).UTC()}
		facts = append(facts, sm.KeyFactOf(keys.Record{Kind: keys.MKey, GUID: ib.GUID(n + 1), Current: h}))
	}
	if err := s.Save(facts); err != nil {
		t.Fatal(err)
	}
	if err := l.Save(facts); err == nil {
		t.Error("keys were taken that are not sealed")
	}
	scan := keystest.New(keystest.Planted(0), keystest.Planted(60), keystest.Planted(119))
	scan.Bytes("root", secret)
	scan.CleanFiles(t, dir)

	again, err := keystore.Open(New(Options{Store: l.store, Log: storetest.Quiet()}), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(facts) || *got[0].Key != *facts[0].Key || *got[119].Key != *facts[119].Key {
		t.Errorf("%d facts come back otherwise than the %d that were saved", len(got), len(facts))
	}
}
