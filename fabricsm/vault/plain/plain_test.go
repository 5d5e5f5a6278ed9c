package plain

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

var sameKey = cmp.Comparer(func(a, b keys.Key) bool { return a == b })

// TestRoundTrip: a written record is read again, and omitted keys are derived.
func TestRoundTrip(t *testing.T) {
	held := func(v uint64, e keys.Epoch, o keys.Origin) keys.Held {
		return keys.Held{Key: keys.New(v), Epoch: e, Origin: o, Since: time.Unix(1000, 0).UTC()}
	}
	place := ib.Place{Switch: 0x100, Port: 3}
	for name, r := range map[string]keys.Record{
		"one key":    {Kind: keys.MKey, GUID: 7, Place: place, Current: held(5, 1, keys.OriginRandom)},
		"three keys": {Kind: keys.CCKey, GUID: 7, Current: held(5, 2, keys.OriginDerived), Pending: held(6, 3, keys.OriginRandom), Previous: held(7, 1, keys.OriginImported)},
		"retired":    {Kind: keys.VSKey, GUID: 7, Retired: true, Floor: 4},
	} {
		derived := func(h keys.Held) bool { return h.Origin == keys.OriginDerived }
		for _, leaveOut := range []func(keys.Held) bool{nil, derived} {
			text, err := json.Marshal(Of(&r, leaveOut))
			if err != nil {
				t.Fatal(err)
			}
			var p Record
			if err := json.Unmarshal(text, &p); err != nil {
				t.Fatal(err)
			}
			got, ok := p.Read(func(h *Held) (keys.Key, bool) { return r.Current.Key, h.Origin == keys.OriginDerived })
			if diff := cmp.Diff(r, got, sameKey); !ok || diff != "" {
				t.Errorf("%s: read %v (-want +got):\n%s", name, ok, diff)
			}
		}
	}
}

// TestRead refuses keys that are none.
func TestRead(t *testing.T) {
	for name, key := range map[string]string{
		"left out": "", "short": "12", "zero": "0000000000000000", "signed": "+00000000000000a", "long": "00000000000000001", "no number": "000000000000000g",
	} {
		p := Record{Kind: keys.MKey, GUID: 7, Current: &Held{Key: key, Epoch: 1}}
		if r, ok := p.Read(nil); ok || !r.Current.IsZero() {
			t.Errorf("%s: it was read", name)
		}
	}
}
