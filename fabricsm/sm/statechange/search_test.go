package statechange

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is a switch with a host at port 1 and another switch at port 2. Nothing is at port 3.
type fabric struct {
	topo   topo.Builder
	queue  work.Queue
	search *Search
	later  []ib.PortNum
}

func newFabric(isAudit bool) *fabric {
	f := &fabric{}
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 3})
	host := f.topo.AddNode(topo.Node{GUID: 0x20, Type: ib.NodeCA, NumPorts: 1})
	other := f.topo.AddNode(topo.Node{GUID: 0x11, Type: ib.NodeSwitch, NumPorts: 3})
	f.topo.Connect(f.topo.PortOf(host, 1), f.topo.PortOf(sw, 1))
	f.topo.Connect(f.topo.PortOf(other, 1), f.topo.PortOf(sw, 2))
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.search = New(f, &f.topo, &f.queue, isAudit)
	f.search.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	return f
}

func (f *fabric) IsAlive(topo.NodeID) bool      { return true }
func (f *fabric) ReadLater(p topo.PortID)       { f.later = append(f.later, f.topo.Port(p).Num) }
func (f *fabric) port(n ib.PortNum) topo.PortID { return f.topo.PortOf(0, n) }

// read answers all reads that are marked, and returns of which ports. Those in changed had changed.
func (f *fabric) read(changed ...ib.PortNum) (ports []ib.PortNum) {
	for x, ok := f.queue.Pop(); ok; x, ok = f.queue.Pop() {
		f.queue.Unmark(x)
		num := f.topo.Port(x.Port()).Num
		ports = append(ports, num)
		differs := false
		for _, c := range changed {
			differs = differs || c == num
		}
		f.search.Answer(x.Port(), differs)
	}
	return ports
}

func TestPortsAreReadUntilAChangeIsFound(t *testing.T) {
	for _, tt := range []struct {
		name        string
		isAudit     bool
		changed     ib.PortNum
		read, later []ib.PortNum
	}{
		{"a link came up", true, 3, []ib.PortNum{3}, []ib.PortNum{1, 2}},
		{"a host", true, 1, []ib.PortNum{3, 1}, []ib.PortNum{2}},
		{"a switch", true, 2, []ib.PortNum{3, 1, 2}, nil},
		{"none", true, 0, []ib.PortNum{3, 1, 2}, nil},
		{"a link came up, without an audit", false, 3, []ib.PortNum{3, 1, 2}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric(tt.isAudit)
			f.search.Begin(0)
			if d := cmp.Diff(tt.read, f.read(tt.changed)); d != "" {
				t.Errorf("ports that were read (-want +got):\n%s", d)
			}
			f.search.Audit()
			if d := cmp.Diff(tt.later, f.later); d != "" {
				t.Errorf("ports that the audit reads (-want +got):\n%s", d)
			}
			if f.later = nil; tt.later != nil {
				f.search.Audit()
			}
			if f.later != nil {
				t.Errorf("the audit reads %v again", f.later)
			}
		})
	}
}

func TestOtherReadsEndNoSearch(t *testing.T) {
	f := newFabric(true)
	f.search.Answer(f.port(1), true)
	f.search.Audit()
	if f.later != nil {
		t.Errorf("the audit reads %v", f.later)
	}
}
