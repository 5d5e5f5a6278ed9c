package satest_test

import (
	"bytes"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// small is a fabric with two levels of switches.
func small(t testing.TB) *netlist.Netlist {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func text(t testing.TB, l *netlist.Netlist) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := l.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func preload(t testing.TB) satest.Preload {
	t.Helper()
	testenv.Program(t, "gcc")
	p, err := satest.BuildPreload(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOpenSMGivesWholeTables shows that the path between OpenSM and ibsim loses nothing: the judge sees all answers of
// OpenSM.
func TestOpenSMGivesWholeTables(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	l := small(t)
	lab := ibsimtest.Start(t, text(t, l))
	m, err := (&satest.OpenSM{Preload: preload(t)}).Start(t.Context(), lab)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c := dial(t, lab, "h7")
	ends := len(l.Nodes)
	for _, tt := range []struct {
		attr   mad.AttrID
		record int
		want   int
	}{
		{mad.AttrNodeRecord, 112, ends},
		{mad.AttrPathRecord, 64, ends * ends},
	} {
		a, err := c.Ask(satest.Question{Method: mad.MethodGetTable, Attr: tt.attr})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(a.Records()); got != tt.want || int(a.Offset)*8 != tt.record || len(a.Data) != tt.want*tt.record {
			t.Errorf("%v: %d records of %d bytes in %d bytes and %d segments, want %d of %d", tt.attr, got, 8*a.Offset, len(a.Data), a.Segments, tt.want, tt.record)
		}
	}
	a, err := c.Ask(satest.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord, Key: ib.NewSAKey(0x1234)})
	if err != nil || !a.Silent() {
		t.Errorf("a wrong SM_Key: %+v, %v, want silence", a, err)
	}
}

func dial(t testing.TB, lab *ibsimlab.Lab, node string) *satest.Client {
	t.Helper()
	c, err := satest.Dial(t.Context(), lab.Socket(), node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
