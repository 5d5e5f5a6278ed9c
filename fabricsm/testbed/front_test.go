package testbed_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// Packets that take time wait for one another in their order, and packets without room are lost.
func TestWork(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	cfg := sa.DefaultConfig()
	s, err := testbed.New(testbed.Options{Netlist: l, SM: sm.DefaultConfig(), SA: &cfg, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1})
	if err := s.Settle(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.Run(5 * time.Second) // names of nodes are read after the rest
	host, err := s.Fabric.Station("h1", false)
	if err != nil {
		t.Fatal(err)
	}
	s.Work = testbed.Work{Packet: time.Millisecond, Dropped: time.Microsecond, Waiting: 2}
	p := transport.Packet{LID: s.View().LID, QP: 1}
	for tid := range 5 {
		p.MAD.SetHeader(mad.Header{
			Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrClassPortInfo, TID: 1,
		})
		p.MAD.SetMod(uint32(tid))
		host.Send(p)
	}
	s.Collect()
	began := s.Now()
	var order []uint32
	var at []time.Duration
	s.Until(10*time.Millisecond, func() bool {
		for _, a := range host.Take(nil) {
			order, at = append(order, a.MAD.Mod()), append(at, (s.Now()-began).Truncate(time.Millisecond))
		}
		return false
	})
	if want := []uint32{0, 1, 2}; !slices.Equal(order, want) || s.Overflowed() != 2 {
		t.Errorf("answered %v, want %v; %d lost, want 2", order, want, s.Overflowed())
	}
	if want := []time.Duration{0, time.Millisecond, 2 * time.Millisecond}; !slices.Equal(at, want) {
		t.Errorf("answered at %v, want %v", at, want)
	}
}
