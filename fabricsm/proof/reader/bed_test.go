package reader_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

var (
	red, blue = proof.Owner{Kind: proof.Tenant, Name: "red"}, proof.Owner{Kind: proof.Tenant, Name: "blue"}
	redKey    = ib.PKey(0x0101)
	blueKey   = ib.PKey(0x0202)
	hosts     = map[string]proof.Owner{"h1": red, "h2": blue, "h3": red, "h4": blue}
)

// bed is a fabric that the Subnet Manager set, and that is read afterwards: red has h1 and h3, blue has h2 and h4.
type bed struct {
	t       *testing.T
	list    *netlist.Netlist
	fabric  *sim.Fabric
	station *sim.Station
	options reader.Options
	// change sees each answer before the reader does, with the round; false loses it.
	change func(round int, m *mad.MAD) bool
	rounds map[asked]int
	sent   int
}

// asked identifies a request.
type asked struct {
	route mad.Route
	attr  mad.AttrID
	mod   uint32
}

func newBed(t *testing.T) *bed {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	stage, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm", Fabric: sim.Options{MulticastTop: true}})
	if err != nil {
		t.Fatal(err)
	}
	grants := []sm.Grant{}
	for _, host := range []string{"h1", "h2", "h3", "h4"} {
		key := redKey
		if hosts[host] == blue {
			key = blueKey
		}
		grants = append(grants, stage.GrantOf(host, 1, key.Full()))
	}
	stage.Start()
	stage.Want(sm.Intent{Revision: 1, Grants: grants})
	if err := stage.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	stage.Crash()
	b := &bed{t: t, list: l, fabric: stage.Fabric, rounds: map[asked]int{}}
	if b.station, err = b.fabric.Station("sm", false); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	b.options = reader.Options{Owner: b.owner, Inbound: proof.InboundMembership, Draw: random.Uint32, Window: 4, Attempts: 3}
	return b
}

// owner declares what the netlist has.
func (b *bed) owner(at ib.Place, is reader.Identity) proof.Owner {
	if is.Type == ib.NodeSwitch {
		if b.node(is.Node) == "" {
			return proof.Owner{}
		}
		return proof.Owner{Kind: proof.Infrastructure}
	}
	if at.IsZero() {
		return proof.Owner{Kind: proof.Infrastructure}
	}
	host := b.node(is.Node)
	if host == "" || b.place(host) != at {
		return proof.Owner{}
	}
	if o, ok := hosts[host]; ok {
		return o
	}
	return proof.Owner{Kind: proof.Infrastructure}
}

func (b *bed) node(guid ib.GUID) string {
	for i := range b.list.Nodes {
		if b.list.Nodes[i].GUID == guid {
			return b.list.Nodes[i].Name
		}
	}
	return ""
}

func (b *bed) place(host string) ib.Place {
	p := b.list.Find(host).Ports[1]
	return ib.Place{Switch: b.list.Find(p.Peer).GUID, Port: p.PeerPort}
}

// read runs the reader over the fabric.
func (b *bed) read() *reader.Found {
	b.t.Helper()
	found, err := b.try()
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func (b *bed) try() (*reader.Found, error) {
	b.t.Helper()
	r, err := reader.New(b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	clear(b.rounds)
	for !r.Done() {
		var out []transport.Packet
		for m, ok := r.Next(); ok; m, ok = r.Next() {
			if m.Method() != mad.MethodGet || len(out) == b.options.Window {
				b.t.Fatalf("the reader sends %v as request %d of a window of %d", m.Method(), len(out)+1, b.options.Window)
			}
			out = append(out, transport.Packet{MAD: m, LID: ib.PermissiveLID})
		}
		if b.sent += len(out); len(out) == 0 || b.sent > 1e6 {
			b.t.Fatalf("after %d requests the reader is not done and sends %d", b.sent, len(out))
		}
		b.exchange(r, out)
	}
	return r.Found()
}

func (b *bed) exchange(r *reader.Reader, out []transport.Packet) {
	for i := range out {
		m := &out[i].MAD
		name := asked{m.Route(), m.Attr(), m.Mod()}
		id := m.TID()
		b.rounds[name]++
		for _, p := range b.station.Exchange(out[i:i+1], nil) {
			if p.Undelivered || !p.MAD.IsResponse() || b.change != nil && !b.change(b.rounds[name], &p.MAD) {
				continue
			}
			r.Answer(&p.MAD)
		}
		r.Expire(id)
	}
}

// to reports whether an answer is of a node, for what is asked of it by attribute.
func (b *bed) to(m *mad.MAD, node string, attr mad.AttrID) bool {
	route := m.Route()
	at := "sm"
	for i := range route.Len() {
		at = b.list.Find(at).Ports[route.At(i)].Peer
	}
	return at == node && m.Attr() == attr
}

// device returns what was read of a node.
func (b *bed) device(f *reader.Found, node string) *proof.Device {
	b.t.Helper()
	guid := b.list.Find(node).GUID
	i := slices.IndexFunc(f.Fabric.Devices, func(d proof.Device) bool { return d.GUID == guid })
	if i < 0 {
		b.t.Fatalf("%s was not found", node)
	}
	return &f.Fabric.Devices[i]
}

// verdict proves what was read.
func (b *bed) verdict(f *reader.Found) proof.Verdict {
	b.t.Helper()
	result, err := proof.Prove(f.Fabric)
	if err != nil {
		b.t.Fatal(err)
	}
	return result.Pair(red, blue)
}

// write reads an attribute of a node, changes it, and writes it back, past the reader.
func (b *bed) write(node string, attr mad.AttrID, mod uint32, change func(data []byte)) {
	b.t.Helper()
	routes := map[string]mad.Route{"sm": {}}
	for queue := []string{"sm"}; len(queue) > 0; queue = queue[1:] {
		for num, p := range b.list.Find(queue[0]).Ports {
			if _, seen := routes[p.Peer]; p.Peer != "" && !seen {
				routes[p.Peer], _ = routes[queue[0]].Append(ib.PortNum(num))
				queue = append(queue, p.Peer)
			}
		}
	}
	var data [mad.DataSize]byte
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		p, r := transport.Packet{LID: ib.PermissiveLID}, routes[node]
		mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: attr, Mod: mod, TID: 1}, &r, ib.MKey{})
		if method == mad.MethodSet {
			change(data[:])
			copy(p.MAD.Data(), data[:])
		}
		in := b.station.Exchange([]transport.Packet{p}, nil)
		if len(in) != 1 || in[0].Undelivered || in[0].MAD.Status() != mad.StatusOK {
			b.t.Fatalf("%v of %v at %s: %+v", method, attr, node, in)
		}
		copy(data[:], in[0].MAD.Data())
	}
}
