//go:build vm

package softhca_test

import (
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/umad"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
)

// vendorClass is a class of GMPs that no agent of Linux answers. It is one without vendor's number.
const vendorClass mad.Class = 0x09

// TestPKeysOfGMPs checks that a GMP carries the P_Key of the sender's entry, and that the receiver learns which of its own
// entries let it in.
func TestPKeysOfGMPs(t *testing.T) {
	f := adapter.NewFabric(t)
	sm := f.Plug(t, "sm", "mlx5_2")
	f.Plug(t, "h1", "mlx5_0")
	f.Plug(t, "h2", "mlx5_1")
	adapter.OpenSM(t, "mlx5_2", "-Z", "off") // tables are set by hand below
	adapter.Pull(t, sm, "mlx5_2")
	m := newManager(t, f)
	m.pkeys(t, h1Port, ib.DefaultPKeyFull, 0x8005, 0x0006, 0x8007)
	m.pkeys(t, h2Port, ib.DefaultPKeyFull, 0x0009, 0x8006, 0x0005)
	dial := func(name string, methods ...mad.Method) *umad.Port {
		p, err := umad.Dial(t.Context(), umad.Options{Device: name, Agents: []umad.Agent{{Class: vendorClass, Version: 1, Methods: methods}}})
		check(t, err)
		t.Cleanup(func() { p.Close() })
		return p
	}
	from, to := dial("mlx5_0"), dial("mlx5_1", mad.MethodGet)
	arrived := make(chan transport.Packet, 16)
	var reader sync.WaitGroup
	reader.Go(func() {
		in := make([]transport.Packet, 1)
		for {
			if n, err := to.Receive(in); n != 1 || err != nil {
				return
			}
			arrived <- in[0]
		}
	})
	defer reader.Wait()
	defer to.Close()
	lid := f.PortInfo("h2", 1).LID
	send := func(index uint16, tid ib.TID) {
		p := transport.Packet{LID: lid, QP: 1, PKeyIndex: index}
		p.MAD.SetHeader(mad.Header{Class: vendorClass, ClassVersion: 1, Method: mad.MethodGet, TID: tid, Attr: 1})
		n, err := from.Send([]transport.Packet{p})
		if check(t, err); n != 1 {
			t.Fatalf("%d packets were sent", n)
		}
	}
	for _, tt := range []struct {
		name       string
		index, got uint16
	}{
		{"default partition", 0, 0},
		{"full to limited", 1, 3},
		{"limited to full", 2, 2},
	} {
		send(tt.index, ib.TID(100+tt.index))
		select {
		case p := <-arrived:
			if p.PKeyIndex != tt.got || uint32(p.MAD.TID()) != uint32(100+tt.index) {
				t.Errorf("%s: %v came by index %d, want %d", tt.name, p.MAD.TID(), p.PKeyIndex, tt.got)
			}
		case <-time.After(soon):
			t.Errorf("%s: nothing came", tt.name)
		}
	}
	before := f.PortInfo("h2", 1).PKeyViolations
	send(3, 200)
	guest.Eventually(t, soon, "a P_Key that the receiver does not have was not counted", func() bool { return f.PortInfo("h2", 1).PKeyViolations > before })
	send(4, 201) // an entry that is empty
	guest.Eventually(t, soon, "a GMP without P_Key was sent", func() bool { return adapter.Counter(t, "mlx5_0", 1, "send_bad_pkey") == 1 })
	send(0, 202)
	select {
	case p := <-arrived:
		if uint32(p.MAD.TID()) != 202 {
			t.Errorf("%v came, which should be refused", p.MAD.TID())
		}
	case <-time.After(soon):
		t.Error("nothing came after what was refused")
	}
}
