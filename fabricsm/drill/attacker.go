package drill

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/hcaconf"
	"portcullis/fabricsm/transport"
)

// attacker is root on a host, with a program that sends any SMP and reads the answers.
type attacker struct {
	site *Site
	host string
	at   *sim.Station
	tid  uint64
}

func (t *Site) attacker(host string) *attacker {
	st, err := t.Fabric.Station(host, false)
	t.scene.Must(err)
	return &attacker{site: t, host: host, at: st}
}

// smp is a request of an attacker.
type smp struct {
	to   string // node, over a directed route
	set  bool
	attr mad.AttrID
	mod  uint32
	key  ib.MKey
	data func(data []byte) // fills the data; nil: zeros
}

func (q *smp) String() string {
	verb := "Get"
	if q.set {
		verb = "Set"
	}
	return fmt.Sprintf("%s %v of %s", verb, q.attr, q.to)
}

// with returns a function that encodes an attribute.
func with[A any](s *Scene, attr *A) func([]byte) {
	return func(data []byte) { s.Must(mad.Encode(data, attr)) }
}

// filled returns a function that fills data with one byte.
func filled(b byte) func([]byte) {
	return func(data []byte) {
		for i := range data {
			data[i] = b
		}
	}
}

// make builds the request.
func (a *attacker) make(q *smp) transport.Packet {
	method := mad.MethodGet
	if q.set {
		method = mad.MethodSet
	}
	a.tid++
	r := a.site.route(a.host, q.to)
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: q.attr, TID: ib.TID(a.tid)}, &r, q.key)
	p.MAD.SetMod(q.mod)
	if q.data != nil {
		q.data(p.MAD.Data())
	}
	return p
}

// ask sends a request and returns the answer, nil if there is none.
func (a *attacker) ask(q smp) *mad.MAD {
	var answer *mad.MAD
	for _, p := range a.at.Exchange([]transport.Packet{a.make(&q)}, nil) {
		if p.MAD.Method() == mad.MethodGetResp && p.MAD.Attr() == q.attr && !p.Undelivered {
			m := p.MAD
			answer = &m
		}
	}
	a.site.Collect()
	return answer
}

// TryKeys has root of a host try M_Keys on every other device, with a Get and then
// with harmful Sets, and demands that none obeys.
func (t *Site) TryKeys(host string, list []ib.MKey) {
	a := t.attacker(host)
	defer a.at.Close()
	for _, key := range list {
		for _, to := range t.Fabric.Nodes() {
			if to != host && a.opens(to, key) {
				t.scene.Check(false, "%s obeys a key that was found", to)
				a.attackWith(key)
				return // the fabric is not what it was
			}
		}
	}
}

// ownKey reads the M_Key of the attacker's own adapter: the host itself is not asked for it.
func (a *attacker) ownKey() ib.MKey {
	var pi mad.PortInfo
	m := a.ask(smp{to: a.host, attr: mad.AttrPortInfo})
	if m == nil || mad.Decode(m.Data(), &pi) != nil {
		return ib.MKey{}
	}
	return pi.MKey
}

// route returns the shortest directed route from one node to another.
func (t *Site) route(from, to string) mad.Route {
	ways := map[string]mad.Route{from: {}}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		n := t.List.Find(queue[0])
		if n.Name == to {
			return ways[to]
		}
		if n.Type != ib.NodeSwitch && n.Name != from {
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			peer := n.Ports[num].Peer
			if _, known := ways[peer]; peer == "" || known {
				continue
			}
			way, _ := ways[n.Name].Append(ib.PortNum(num))
			ways[peer] = way
			queue = append(queue, peer)
		}
	}
	t.scene.Must(fmt.Errorf("no way from %s to %s", from, to))
	return mad.Route{}
}

// ports are those by which an SMP comes into the nodes on the way between two.
func (t *Site) ports(from, to string) (in []ib.PortNum) {
	way := t.route(from, to)
	at := t.List.Find(from)
	for i := range way.Len() {
		out := at.Ports[way.At(i)]
		in = append(in, out.PeerPort)
		at = t.List.Find(out.Peer)
	}
	return in
}

// state is what can be set on the devices, by what it is: P_Keys, routes, states
// of ports, names. Counters of violations are not in it.
func (t *Site) state() map[string]string {
	out := make(map[string]string)
	for _, name := range t.Fabric.Nodes() {
		n := t.List.Find(name)
		if n == nil {
			continue
		}
		for num := range n.Ports {
			p := ib.PortNum(num)
			if n.Type != ib.NodeSwitch && num == 0 {
				continue
			}
			at := fmt.Sprintf("%s port %d", name, num)
			pi := t.Fabric.PortInfo(name, p)
			pi.MKeyViolations, pi.PKeyViolations, pi.QKeyViolations = 0, 0, 0
			out["PortInfo of "+at] = fmt.Sprintf("%+v %x", pi, pi.MKey.Reveal())
			out["P_Keys of "+at] = fmt.Sprint(t.Fabric.PKeys(name, p))
			out["GUIDs of "+at] = fmt.Sprint(t.Fabric.GUIDs(name, p))
			out["lanes of "+at] = fmt.Sprint(t.Fabric.SLtoVL(name, 0, p), t.Fabric.VLArbitration(name, p, mad.VLArbLow0))
		}
		if n.Type == ib.NodeSwitch {
			info := t.Fabric.SwitchInfo(name)
			info.PortStateChange = false
			out["SwitchInfo of "+name] = fmt.Sprintf("%+v", info)
			var ways []ib.PortNum
			for lid := range ib.LID(mad.LIDsPerBlock) {
				ways = append(ways, t.Fabric.Egress(name, lid))
			}
			out["routes of "+name] = fmt.Sprintf("%v %v", ways, t.Fabric.MulticastPorts(name, ib.MinMulticastLID))
		}
	}
	return out
}

// changed lists what differs between two states, in order.
func changed(before, after map[string]string) (out []string) {
	for _, what := range slices.Sorted(maps.Keys(after)) {
		if before[what] != after[what] {
			out = append(out, what)
		}
	}
	return out
}

// violations are the SMPs without the right M_Key that a device counted.
func (t *Site) violations(node string) uint16 {
	num := ib.PortNum(1)
	if t.List.Find(node).Type == ib.NodeSwitch {
		num = 0
	}
	return t.Fabric.PortInfo(node, num).MKeyViolations
}

// configure applies a signed configuration to adapters of hosts, which locks them, and boots them.
func (t *Site) configure(hosts []string, c hcaconf.Config) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // no secret: only simulated adapters trust it
	device := t.device
	device.Trusts = hcaconf.Ed25519Key(private.Public().(ed25519.PublicKey))
	c.Locked = true
	for _, h := range hosts {
		t.scene.Must(t.Fabric.SetDevice(h, device))
		message := hcaconf.Message{Config: c, GUID: t.List.Find(h).GUID, Serial: 1}.Encode()
		t.scene.Must(t.Fabric.ApplyConfig(h, hcaconf.Signed{Message: message, Signature: ed25519.Sign(private, message)}))
		t.scene.Must(t.Fabric.Reboot(h))
	}
}
