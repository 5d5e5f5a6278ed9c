package tpm_test

import (
	"bytes"
	"errors"
	"testing"

	"portcullis/attest"
	"portcullis/attest/ek"
	"portcullis/attest/tpm"
	"portcullis/attest/tpm/tpmtest"
)

// TestStoredAK checks that the second key outlives the process that made it, in this boot and TPM alone, and signs only
// once the register is capped. It tries each kind of EK.
func TestStoredAK(t *testing.T) {
	t.Parallel()
	for _, kind := range ek.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dev := tpmtest.New(t, tpmtest.Options{})
			ctx, start := t.Context(), attest.Start{Agent: "1"}
			value := attest.OpenPCRValue(start, nil)
			d := open(t, dev)
			keys, err := d.NewKeys(ctx, kind)
			must(t, err)
			must(t, keys.Extend(ctx, 15, start.Digest()))
			pair, err := keys.NewPair(ctx, 15, value)
			must(t, err)
			stored := pair.AK2.Stored()
			before, err := d.Boot(ctx)
			must(t, err)
			// From here on as if killed: opening a TPM without resource manager flushes
			// what is left.
			load := func(s tpm.StoredAK, value []byte) (*tpm.Keys, *tpm.AK, error) {
				must(t, d.Close()) // a software TPM serves one at a time
				d = open(t, dev)
				keys, err := d.NewKeys(ctx, kind)
				must(t, err)
				ak, err := keys.LoadAK(ctx, s, 15, value)
				return keys, ak, err
			}
			keys, ak, err := load(stored, attest.CappedPCRValue(value))
			must(t, err)
			if _, err := ak.Quote(ctx, []int{0, 15}, make([]byte, 32)); !errors.Is(err, tpm.ErrPolicy) {
				t.Errorf("before the cap: %v, want %v", err, tpm.ErrPolicy)
			}
			must(t, keys.Extend(ctx, 15, attest.HandOverDigest()))
			if _, err := ak.Quote(ctx, []int{0, 15}, make([]byte, 32)); err != nil {
				t.Errorf("after the cap: %v", err)
			}
			must(t, ak.Close(ctx))
			must(t, keys.Close(ctx))

			flipped := bytes.Clone(stored.Private)
			flipped[len(flipped)-1] ^= 1
			for name, s := range map[string]tpm.StoredAK{
				"no key":                 {},
				"private half altered":   {Public: stored.Public, Private: flipped},
				"private half truncated": {Public: stored.Public, Private: stored.Private[:10]},
				"private half missing":   {Public: stored.Public},
				"the first key":          pair.AK1.Stored(),
				"halves of two keys":     {Public: stored.Public, Private: pair.AK1.Stored().Private},
				"huge":                   {Public: stored.Public, Private: make([]byte, 5000)},
				"public half truncated":  {Public: stored.Public[:20], Private: stored.Private},
			} {
				if _, _, err := load(s, attest.CappedPCRValue(value)); !errors.Is(err, tpm.ErrStoredAK) {
					t.Errorf("%s: %v, want %v", name, err, tpm.ErrStoredAK)
				}
			}

			must(t, d.Close())
			must(t, dev.PowerCycle(ctx))
			_, ak, err = load(stored, attest.CappedPCRValue(value))
			must(t, err) // it loads, and is dead
			if _, err := ak.Quote(ctx, []int{0, 15}, make([]byte, 32)); !errors.Is(err, tpm.ErrPolicy) {
				t.Errorf("in the next boot: %v, want %v", err, tpm.ErrPolicy)
			}
			if after, err := d.Boot(ctx); err != nil || before.Same(after) {
				t.Errorf("a power cycle is the same boot: %v, %v, %v", before, after, err)
			}
		})
	}
	t.Run("in another TPM", func(t *testing.T) {
		t.Parallel()
		ctx, value := t.Context(), make([]byte, 32)
		keys, err := open(t, tpmtest.New(t, tpmtest.Options{})).NewKeys(ctx)
		must(t, err)
		ak, err := keys.NewAK(ctx, 15, value)
		must(t, err)
		other, err := open(t, tpmtest.New(t, tpmtest.Options{})).NewKeys(ctx)
		must(t, err)
		if _, err := other.LoadAK(ctx, ak.Stored(), 15, value); !errors.Is(err, tpm.ErrStoredAK) {
			t.Errorf("got %v, want %v", err, tpm.ErrStoredAK)
		}
	})
}
