package verify_test

import (
	"fmt"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/topospec/verify"
)

// bench is a small fabric with its specification, and the facts that a Subnet
// Manager finds in the order in which it finds them.
type bench struct {
	t      testing.TB
	rev    *topospec.Revision
	spec   *topospec.Spec
	fabric *topo.Fabric
	sm     topo.PortID
	facts  []verify.Seen
}

// stock are devices without a link.
var stock = []string{
	"spare-1,0x0020000000009001,ConnectX-6,,spare",
	"spare-2,0x0020000000009101,ConnectX-7,,spare",
	"old-1,0x0020000000009201,ConnectX-6,,retired",
}

func newBench(t testing.TB, change func(*topospec.Revision)) *bench {
	b := &bench{t: t, rev: topospectest.Revision(t, topospectest.Small(), stock...)}
	if change != nil {
		change(b.rev)
	}
	b.spec = topospectest.Spec(t, b.rev)
	b.fabric, b.sm = topospectest.Fabric(t, b.rev)
	j := verify.New(b.spec, topospec.Observe, nil)
	verify.Sweep(j, b.fabric, b.sm)
	for _, c := range j.Changes() {
		b.facts = append(b.facts, c.Seen)
	}
	return b
}

// fact returns the fact at a port of a switch by its name.
func (b *bench) fact(name string, port ib.PortNum) *verify.Seen {
	at := ib.Place{Switch: topospectest.Device(b.t, b.rev, name).GUID, Port: port}
	for i := range b.facts {
		if b.facts[i].At == at {
			return &b.facts[i]
		}
	}
	b.facts = append(b.facts, verify.Seen{At: at})
	return &b.facts[len(b.facts)-1]
}

// tell passes all facts to a judge; the first is our own place.
func (b *bench) tell(j *verify.Judge) {
	b.t.Helper()
	j.Attach(b.facts[0])
	for _, s := range b.facts {
		j.Link(s)
	}
}

// wrong returns the ports that are not verified, as text.
func (b *bench) wrong(j *verify.Judge) []string {
	var out []string
	for _, s := range b.facts {
		if r := j.Link(s); r.Verdict != verify.Verified {
			name := b.spec.Device(b.spec.DeviceByGUID(s.At.Switch)).Name
			out = append(out, fmt.Sprintf("%s/%d %v %v %v", name, s.At.Port, r.Verdict, r.Action, r.State))
		}
	}
	slices.Sort(out)
	return out
}

// as makes a fact show a device by its name.
func (b *bench) as(s *verify.Seen, name string) {
	d := topospectest.Device(b.t, b.rev, name)
	s.GUID, s.Port, s.NumPorts, s.PortGUID = d.GUID, 1, 1, d.GUID+1
	if s.Type = ib.NodeCA; d.Kind == topospec.KindSwitch {
		s.Type, s.NumPorts, s.PortGUID = ib.NodeSwitch, d.Ports, d.GUID
	}
}

func link(b *bench, r *topospec.Revision, name string, port ib.PortNum) *topospec.Link {
	g := topospectest.Device(b.t, r, name).GUID
	for i := range r.Links {
		if r.Links[i].A == (topospec.End{GUID: g, Port: port}) {
			return &r.Links[i]
		}
	}
	b.t.Fatalf("%s has no link at port %d", name, port)
	return nil
}

func drop(r *topospec.Revision, t *testing.T, name string, port ib.PortNum) []topospec.Link {
	g := topospectest.Device(t, r, name).GUID
	return slices.DeleteFunc(r.Links, func(l topospec.Link) bool { return l.A == topospec.End{GUID: g, Port: port} })
}
