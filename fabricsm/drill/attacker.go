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

// Attacker is root on a host, with a program that sends any SMP and reads the answers.
type Attacker struct {
	Site *Site
	Host string
	At   *sim.Station
	tid  uint64
}

func (t *Site) Attacker(host string) *Attacker {
	st, err := t.Fabric.Station(host, false)
	t.Scene.Must(err)
	return &Attacker{Site: t, Host: host, At: st}
}

// SMP is a request of an attacker.
type SMP struct {
	To   string // node, over a directed route
	Set  bool
	Attr mad.AttrID
	Mod  uint32
	Key  ib.MKey
	Data func(data []byte) // fills the data; nil: zeros
}

func (q *SMP) String() string {
	verb := "Get"
	if q.Set {
		verb = "Set"
	}
	return fmt.Sprintf("%s %v of %s", verb, q.Attr, q.To)
}

// With returns a function that encodes an attribute.
func With[A any](s *Scene, attr *A) func([]byte) {
	return func(data []byte) { s.Must(mad.Encode(data, attr)) }
}

// Filled returns a function that fills data with one byte.
func Filled(b byte) func([]byte) {
	return func(data []byte) {
		for i := range data {
			data[i] = b
		}
	}
}

// Make builds the request.
func (a *Attacker) Make(q *SMP) transport.Packet {
	method := mad.MethodGet
	if q.Set {
		method = mad.MethodSet
	}
	a.tid++
	r := a.Site.Route(a.Host, q.To)
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: q.Attr, TID: ib.TID(a.tid)}, &r, q.Key)
	p.MAD.SetMod(q.Mod)
	if q.Data != nil {
		q.Data(p.MAD.Data())
	}
	return p
}

// Ask sends a request and returns the answer, nil if there is none.
func (a *Attacker) Ask(q SMP) *mad.MAD {
	var answer *mad.MAD
	for _, p := range a.At.Exchange([]transport.Packet{a.Make(&q)}, nil) {
		if p.MAD.Method() == mad.MethodGetResp && p.MAD.Attr() == q.Attr && !p.Undelivered {
			m := p.MAD
			answer = &m
		}
	}
	a.Site.Collect()
	return answer
}

// OwnKey reads the M_Key of the attacker's own adapter: the host itself is not asked for it.
func (a *Attacker) OwnKey() ib.MKey {
	var pi mad.PortInfo
	m := a.Ask(SMP{To: a.Host, Attr: mad.AttrPortInfo})
	if m == nil || mad.Decode(m.Data(), &pi) != nil {
		return ib.MKey{}
	}
	return pi.MKey
}

// Route returns the shortest directed route from one node to another.
func (t *Site) Route(from, to string) mad.Route {
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
	t.Scene.Must(fmt.Errorf("no way from %s to %s", from, to))
	return mad.Route{}
}

// Ports are those by which an SMP comes into the nodes on the way between two.
func (t *Site) Ports(from, to string) (in []ib.PortNum) {
	way := t.Route(from, to)
	at := t.List.Find(from)
	for i := range way.Len() {
		out := at.Ports[way.At(i)]
		in = append(in, out.PeerPort)
		at = t.List.Find(out.Peer)
	}
	return in
}

// State is what can be set on the devices, by what it is: P_Keys, routes, states
// of ports, names. Counters of violations are not in it.
func (t *Site) State() map[string]string {
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

// Changed lists what differs between two states, in order.
func Changed(before, after map[string]string) (out []string) {
	for _, what := range slices.Sorted(maps.Keys(after)) {
		if before[what] != after[what] {
			out = append(out, what)
		}
	}
	return out
}

// Violations are the SMPs without the right M_Key that a device counted.
func (t *Site) Violations(node string) uint16 {
	num := ib.PortNum(1)
	if t.List.Find(node).Type == ib.NodeSwitch {
		num = 0
	}
	return t.Fabric.PortInfo(node, num).MKeyViolations
}

// configure applies a signed configuration to adapters of hosts, which locks them, and boots them.
func (t *Site) configure(hosts []string, c hcaconf.Config) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // no secret: only simulated adapters trust it
	device := t.Device
	device.Trusts = hcaconf.Ed25519Key(private.Public().(ed25519.PublicKey))
	c.Locked = true
	for _, h := range hosts {
		t.Scene.Must(t.Fabric.SetDevice(h, device))
		message := hcaconf.Message{Config: c, GUID: t.List.Find(h).GUID, Serial: 1}.Encode()
		t.Scene.Must(t.Fabric.ApplyConfig(h, hcaconf.Signed{Message: message, Signature: ed25519.Sign(private, message)}))
		t.Scene.Must(t.Fabric.Reboot(h))
	}
}

// KeyOf is the M_Key that a device really has.
func (t *Site) KeyOf(node string) ib.MKey {
	num := ib.PortNum(1)
	if t.List.Find(node).Type == ib.NodeSwitch {
		num = 0
	}
	return t.Fabric.PortInfo(node, num).MKey
}

// Opens reports whether a device answers a request with a key.
func (a *Attacker) Opens(node string, key ib.MKey) bool {
	return a.Ask(SMP{To: node, Attr: mad.AttrPortInfo, Key: key}) != nil
}

// GuestsOfHost is how many virtual functions a host with guests has.
const GuestsOfHost = 4

// Guest is root in a guest of a host, which has a virtual function of its adapter.
func (t *Site) Guest(host string) *Attacker {
	st, err := t.Fabric.VirtualFunction(host, GuestsOfHost)
	t.Scene.Must(err)
	return &Attacker{Site: t, Host: host, At: st}
}
