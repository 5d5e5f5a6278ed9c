package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// classKeysOf counts end ports that hold the key of a class, and protect it.
func (f *keyFabric) classKeysOf(class mad.Class) (n int) {
	for i := range f.list.Nodes {
		node := &f.list.Nodes[i]
		for num := range node.Ports {
			if k, ok := f.ClassKey(node.Name, ib.PortNum(num), class); ok && !k.Key.IsZero() && k.Protect {
				n++
			}
		}
	}
	return n
}

// TestSMGivesOutClassKeys: portcullisd sm issues the keys that the configuration names, keeps them over a restart, and
// takes them back on request.
func TestSMGivesOutClassKeys(t *testing.T) {
	t.Parallel()
	f := servedKeyFabric(t, sim.Modern())
	s := setKeys(t, "m_key_mode: random", "cc_key_enable: enable", "vs_key_enable: enable", "n2n_key_enable: ignore")
	all := len(f.endPorts())
	enabled := func(want int) {
		t.Helper()
		eventually(t, "keys of classes", func() (bool, string) {
			cc, vs := f.classKeysOf(mad.ClassCongestionControl), f.classKeysOf(mad.ClassVendorVS)
			return cc == want && vs == want, ""
		})
	}
	d, c := s.run(t, f)
	enabled(all)
	eventually(t, "the report", func() (bool, string) {
		k, err := c.Keys().Get(t.Context())
		if err != nil {
			return false, err.Error()
		}
		want := []v1.ClassKeys{{Kind: "cc_key", Enable: "enable", Settled: all}, {Kind: "vs_key", Enable: "enable", Settled: all}}
		diff := cmp.Diff(want, k.Classes)
		return diff == "", diff
	})
	if n := f.classKeysOf(mad.ClassVendorN2N); n != 0 {
		t.Errorf("%d ports got a key of a class that is ignored", n)
	}
	before, _ := f.ClassKey("leaf1", 0, mad.ClassVendorVS)
	d.stop()
	_, c = s.run(t, f)
	enabled(all)
	if after, _ := f.ClassKey("leaf1", 0, mad.ClassVendorVS); after.Key != before.Key || after.Violations != 0 {
		t.Errorf("after a restart: the same key %v, %d violations", after.Key == before.Key, after.Violations)
	}
	released(t, c)
	if cc, vs := f.classKeysOf(mad.ClassCongestionControl), f.classKeysOf(mad.ClassVendorVS); cc+vs != 0 {
		t.Errorf("released, and devices hold %d CC_Keys and %d VS_Keys", cc, vs)
	}
}
