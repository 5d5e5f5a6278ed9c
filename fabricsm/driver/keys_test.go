package driver

import (
	"strings"
	"testing"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// TestKeysAreNeitherLostNorShown: with M_Keys, nothing starts without a store, nor
// with a recording.
func TestKeysAreNeitherLostNorShown(t *testing.T) {
	for name, o := range map[string]Options{
		"there is no store": {},
		"a recording would": {Store: noStore{}, Record: &silentRecorder{}},
	} {
		o.Core.MKey.Source = keys.Random{}
		if err := o.keys(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
	}
	if err := (&Options{Store: noStore{}, Core: sm.Config{MKey: sm.MKeyConfig{Source: keys.Random{}}}}).keys(); err != nil {
		t.Errorf("with a store: %v", err)
	}
}

type (
	silentRecorder struct{ Recorder }
	noStore        struct{ Store }
)
