package linkspeed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// fabric is two switches of one vendor, with a cable between their ports 1.
type fabric struct {
	topo   topo.Builder
	queue  work.Queue
	rules  portpolicy.Rules
	config portpolicy.Config
	links  *Links
	info   map[topo.PortID]*mad.PortInfo
	asked  []topo.PortID
	slow   []fault.Event
}

var _ Fabric = (*fabric)(nil)

func newFabric(most ib.Speed) *fabric {
	f := &fabric{info: make(map[topo.PortID]*mad.PortInfo)}
	for guid := range ib.GUID(2) {
		f.topo.AddNode(topo.Node{GUID: guid + 1, Type: ib.NodeSwitch, NumPorts: 2, VendorID: mad.VendorMellanox})
	}
	f.topo.Connect(f.near(), f.far())
	for _, p := range []topo.PortID{f.near(), f.far()} {
		f.info[p] = &mad.PortInfo{
			PortState: ib.PortActive, LinkSpeedSupported: ib.SpeedQDR, LinkSpeedEnabled: ib.SpeedQDR, LinkSpeedActive: ib.SpeedQDR,
			LinkWidthEnabled: ib.Width1x | ib.Width4x, LinkWidthActive: ib.Width4x,
		}
	}
	f.config.Link.MaxSpeed = most
	f.rules = portpolicy.New(&f.topo, &f.config)
	f.queue.Extend(f.topo.NumNodes(), f.topo.NumPorts())
	f.links = New(f, &f.topo, &f.queue, &f.rules)
	f.links.Extend(f.topo.NumPorts())
	return f
}

func (f *fabric) near() topo.PortID                  { return f.topo.PortOf(0, 1) }
func (f *fabric) far() topo.PortID                   { return f.topo.PortOf(1, 1) }
func (f *fabric) Info(p topo.PortID) *mad.PortInfo   { return f.info[p] }
func (f *fabric) IsRead(topo.PortID) bool            { return true }
func (f *fabric) AskLater(p topo.PortID)             { f.asked = append(f.asked, p) }
func (f *fabric) Show(topo.PortID)                   {}
func (f *fabric) Problem(_ fault.Key, e fault.Event) { f.slow = append(f.slow, e) }
func (f *fabric) Solved(fault.Key)                   { f.slow = nil }
func (f *fabric) answer(p topo.PortID, m mad.Method, enabled, active uint8) {
	f.links.Answer(p, m, &mad.MlnxExtendedPortInfo{LinkSpeedSupported: mad.MlnxSpeedFDR10, LinkSpeedEnabled: enabled, LinkSpeedActive: active})
}

func TestSlowLinks(t *testing.T) {
	f := newFabric(0)
	f.links.Judge(f.near())
	if len(f.slow) != 0 {
		t.Errorf("a link at its full speed: %q", f.slow)
	}
	f.info[f.near()].LinkWidthActive, f.info[f.far()].LinkWidthActive = ib.Width1x, ib.Width1x
	f.links.Judge(f.near())
	want := []fault.Event{&SlowLink{
		Place: ib.Place{Switch: 1, Port: 1}, Peer: ib.Place{Switch: 2, Port: 1},
		Speed: ib.QDR, Expected: ib.QDR, Width: ib.Width1x, Enabled: ib.Width4x,
	}}
	if d := cmp.Diff(want, f.slow); d != "" {
		t.Errorf("a link on one lane of four (-want +got):\n%s", d)
	}
	f.links.Retuned(f.far())
	if f.links.Judge(f.near()); len(f.slow) != 0 {
		t.Errorf("a link that waits for its training: %q", f.slow)
	}
	if !f.links.Train(f.near(), f.far()) || f.links.Train(f.near(), f.far()) {
		t.Error("the link is not trained once")
	}
	if f.links.Judge(f.far()); len(f.slow) != 1 {
		t.Errorf("a link that was trained in vain: %q", f.slow)
	}
}

// TestFDR10 has FDR10 enabled by a policy that reaches up to it.
func TestFDR10(t *testing.T) {
	f := newFabric(ib.FDR10)
	p := f.near()
	f.links.Note(p, ib.PortNop, true)
	if d := cmp.Diff([]topo.PortID{p}, f.asked); d != "" || !f.links.AsksFDR10(p) || f.links.AsksFDR10(f.far()) {
		t.Fatalf("ports that are asked (-want +got):\n%s", d)
	}
	if _, due := f.links.DueFDR10(p, true); due {
		t.Error("written before it is read")
	}
	f.answer(p, mad.MethodGet, 0, 0)
	if _, due := f.links.DueFDR10(p, false); due {
		t.Error("written though no device may be changed")
	}
	if enable, due := f.links.DueFDR10(p, true); !enable || !due {
		t.Errorf("enabled %v, %v", enable, due)
	}
	f.answer(p, mad.MethodSet, mad.MlnxSpeedFDR10, 0)
	if got := f.links.Offered(p); got != ib.FDR10 {
		t.Errorf("offers %v", got)
	}
	if _, due := f.links.DueFDR10(p, true); due {
		t.Error("written twice")
	}
	f.answer(p, mad.MethodGet, mad.MlnxSpeedFDR10, mad.MlnxSpeedFDR10)
	if got, _ := f.links.Running(p); got != ib.FDR10 {
		t.Errorf("runs at %v", got)
	}
	f.links.Note(p, ib.PortActive, false)
	if got, _ := f.links.Running(p); got != ib.QDR || f.links.AsksFDR10(p) {
		t.Errorf("another link runs at %v", got)
	}
}
