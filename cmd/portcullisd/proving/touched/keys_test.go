package touched_test

import (
	"testing"

	"portcullis/cmd/portcullisd/proving/touched"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portview"
	"portcullis/fabricsm/topo"
)

// TestKeysThatWereReadAgain compares views whose P_Key tables were read, or are not known: a table that only was read again is not
// touched.
func TestKeysThatWereReadAgain(t *testing.T) {
	t.Parallel()
	var b topo.Builder
	id := b.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 2})
	f := b.Freeze()
	p := f.PortOf(id, 1)
	for name, c := range map[string]struct {
		old, now []ib.PKey
		want     bool
	}{
		"read again":         {[]ib.PKey{0xffff, 0x8101}, []ib.PKey{0xffff, 0x8101}, false},
		"other":              {[]ib.PKey{0xffff, 0x8101}, []ib.PKey{0xffff, 0x8202}, true},
		"taken away":         {[]ib.PKey{0xffff, 0x8101}, []ib.PKey{0xffff, 0}, true},
		"known no longer":    {[]ib.PKey{0xffff}, nil, true},
		"found to be empty":  {nil, []ib.PKey{0, 0}, false},
		"found to hold some": {nil, []ib.PKey{0, 0x8101}, true},
	} {
		var s portview.Sketch
		s.SetPKeys(p, c.old...)
		old := &sm.View{Fabric: f, Devices: s.Devices(f, nil)}
		s.SetPKeys(p, c.now...)
		v := touched.Since(old, &sm.View{Fabric: f, Devices: s.Devices(f, nil)})
		if got := v.Has(reader.Value{Node: 0x10, Port: 1, Attr: mad.AttrPKeyTable}); got != c.want || v.IsEmpty() == c.want {
			t.Errorf("%s: touched is %t, want %t", name, got, c.want)
		}
	}
}
