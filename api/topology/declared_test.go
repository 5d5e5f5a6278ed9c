package topology_test

import (
	"testing"

	"portcullis/api/topology"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// TestDeclaredSwitches: the switches of the revision in force are known with their ports, those of a draft are not.
func TestDeclaredSwitches(t *testing.T) {
	s := newSite(t, shared.Open(t), topology.Rules{Alone: true})
	got, err := s.keep.DeclaredSwitches(t.Context(), s.store)
	if err != nil || got != nil {
		t.Fatalf("without a topology: %v, %v; want nil", got, err)
	}
	d := s.draft(s.rev)
	if got, err := s.keep.DeclaredSwitches(t.Context(), s.store); err != nil || got != nil {
		t.Fatalf("with a draft: %v, %v; want nil", got, err)
	}
	s.approve(d, "peter")
	s.activate(d.Revision, "observe")
	if got, err = s.keep.DeclaredSwitches(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	switches := 0
	for i := range s.fabric.NumNodes() {
		n := s.fabric.Node(topo.NodeID(i))
		ports, declared := got[n.GUID]
		if is := n.Type == ib.NodeSwitch; is != declared || is && ports != int(n.NumPorts) {
			t.Errorf("%v %v with %d ports: declared %v with %d", n.Type, n.GUID, n.NumPorts, declared, ports)
		}
		if declared {
			switches++
		}
	}
	if switches == 0 || switches != len(got) {
		t.Errorf("%d switches of the fabric, %d are declared", switches, len(got))
	}
	for i := range s.rev.Devices {
		if d := &s.rev.Devices[i]; (d.Kind == topospec.KindSwitch) != (got[d.GUID] > 0) {
			t.Errorf("device %v of kind %v: %d ports", d.GUID, d.Kind, got[d.GUID])
		}
	}
}
