package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// ccKeys returns the CC_Keys on all devices, by GUID of their end ports.
func (f *keyFabric) ccKeys() map[ib.GUID]guard.State {
	out := make(map[ib.GUID]guard.State)
	for _, p := range f.endPorts() {
		node, num, _ := strings.Cut(p.at, "/")
		k, _ := f.ClassKey(node, ib.PortNum(num[0]-'0'), mad.ClassCongestionControl)
		out[p.guid] = k
	}
	return out
}

// lids returns the LIDs of all end ports.
func (f *keyFabric) lids() map[ib.GUID]ib.LID {
	out := make(map[ib.GUID]ib.LID)
	for _, p := range f.endPorts() {
		node, num, _ := strings.Cut(p.at, "/")
		out[p.guid] = f.PortInfo(node, ib.PortNum(num[0]-'0')).LID
	}
	return out
}

// TestTakeOverCCKeys: another manager has issued CC_Keys, by the real ibccconfig, and left its file. Ours takes the devices
// over, each gets a key of its own, and the real ibccquery and ibccconfig do something under that one alone.
func TestTakeOverCCKeys(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm", "ibccquery", "ibccconfig")
	f := servedKeyFabric(t, sim.Modern())
	cache := f.opensm(t, "m_key 0x0\n")
	var file strings.Builder
	for guid, lid := range f.lids() {
		key := 0xcc00_0000_0000_0000 | uint64(lid)<<32 | 0x1234_5678
		out, err := f.client.Diag(t.Context(), "sm", "ibccconfig", "CK", fmt.Sprint(lid), fmt.Sprintf("0x%x", key), "1", "0", "0")
		if err != nil {
			t.Fatalf("ibccconfig: %v\n%s", err, out)
		}
		if have := f.ccKeys()[guid]; have.Key.Reveal() != key || !have.Protect {
			t.Fatalf("ibccconfig gave LID %v no CC_Key", lid)
		}
		fmt.Fprintf(&file, "0x%016x 0x%016x\n\n", uint64(guid), key)
	}
	write(t, filepath.Join(cache, "guid2cckey"), file.String())
	before := f.ccKeys()

	s := setKeys(t, "m_key_enable: ignore", "cc_key_enable: enable", "import: "+cache)
	d, _ := s.run(t, f)
	eventually(t, "CC_Keys of ours", func() (bool, string) {
		for guid, k := range f.ccKeys() {
			if k.Key.IsZero() || k.Key == before[guid].Key || !k.Protect {
				return false, d.lines.String()
			}
		}
		return true, ""
	})
	lids, now := f.lids(), f.ccKeys()
	for guid, k := range now {
		if k.Violations != 0 {
			t.Errorf("%v counted %d requests under a wrong key", guid, k.Violations)
		}
		for _, tt := range []struct {
			name    string
			key     uint64
			answers bool
		}{{"the right key", k.Key.Reveal(), true}, {"the one before, which is good until the grace is over", before[guid].Key.Reveal(), true}, {"no key", 0, false}} {
			out, err := f.client.Diag(t.Context(), "sm", "ibccquery", "-c", fmt.Sprintf("0x%x", tt.key), "CI", fmt.Sprint(lids[guid]))
			if (err == nil) != tt.answers {
				t.Errorf("ibccquery of LID %v with %s: %v\n%s", lids[guid], tt.name, err, out)
			}
		}
	}
	for guid, lid := range lids {
		if out, err := f.client.Diag(t.Context(), "sm", "ibccconfig", "CK", fmt.Sprint(lid), "0", "0", "0", "0"); err == nil {
			t.Errorf("ibccconfig took the key of LID %v away without it:\n%s", lid, out)
		}
		if f.ccKeys()[guid].Key != now[guid].Key {
			t.Errorf("the key of LID %v was changed", lid)
		}
	}
	d.stop()
}
