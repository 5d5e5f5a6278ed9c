package driver

import (
	"strings"
	"testing"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
)

// TestKeysAreNotLost: with M_Keys, nothing starts without a store.
func TestKeysAreNotLost(t *testing.T) {
	o := Options{Core: sm.Config{MKey: mkeys.Config{Source: keys.Random{}}}}
	if err := o.keys(); err == nil || !strings.Contains(err.Error(), "there is no store") {
		t.Errorf("error %v, want one that says that there is no store", err)
	}
	if err := (&Options{Store: noStore{}, Core: sm.Config{MKey: mkeys.Config{Source: keys.Random{}}}}).keys(); err != nil {
		t.Errorf("with a store: %v", err)
	}
}

type noStore struct{ Store }
