package sm_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/mkeys/keyimport"
)

// TestTakeOverInLoss: while most packets are lost a device is found, falls silent, is
// looked for again and answers another way; whatever of that falls between two steps of
// the takeover, once packets arrive every device ends on a key of ours.
func TestTakeOverInLoss(t *testing.T) {
	for seed := range uint64(60) {
		l := tree(t, 4, 8)
		e, had := locked(t, l, sameKey(keys.New(theirKey)))
		e.cfg.MKey = ours(t, &keyimport.Keys{Keys: imported(had), Behind: neighbours(l)})
		e.rng = rand.New(rand.NewPCG(seed, 7))
		e.bad.lose = 0.7
		e.start()
		e.run(3 * time.Second)
		e.bad.lose = 0
		e.run(30 * time.Second)
		for g, k := range e.mkeysNow() {
			if k == had[g] {
				t.Errorf("seed %d: %v is still on the key of another one; problems %q", seed, g, e.problems())
			}
		}
	}
}
