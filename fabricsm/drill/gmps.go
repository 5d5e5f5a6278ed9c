package drill

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/transport"
)

// gmp is a request of general management of an attacker.
type gmp struct {
	to    string // node
	pkey  ib.PKey
	class mad.Class
	set   bool
	attr  mad.AttrID
	mod   uint32
	key   ib.MKey
	data  func([]byte) // fills the attribute, in a class that has keys; nil: zeros
	body  []byte       // of the attribute, in one that has none and begins at byte 64
}

// endPortOf is the number of the port that a node has a LID at.
func (t *Site) endPortOf(node string) ib.PortNum {
	if t.List.Find(node).Type == ib.NodeSwitch {
		return 0
	}
	return 1
}

// lidOf is the LID of a node now.
func (t *Site) lidOf(node string) ib.LID { return t.Fabric.PortInfo(node, t.endPortOf(node)).LID }

// classKey is what a node has for a class.
func (t *Site) classKey(node string, c mad.Class) guard.State {
	k, _ := t.Fabric.ClassKey(node, t.endPortOf(node), c)
	return k
}

// request sends a GMP and returns the answer, nil if there is none.
func (a *attacker) request(q gmp) *mad.MAD {
	h := mad.Header{Class: q.class, ClassVersion: 1, Method: mad.MethodGet, Attr: q.attr, Mod: q.mod}
	if q.set {
		h.Method = mad.MethodSet
	}
	p := transport.Packet{LID: a.site.lidOf(q.to), QP: 1}
	keyed, hasKey := mad.LookupKeyClass(q.class)
	if hasKey {
		h.ClassVersion = keyed.Version
	}
	a.tid++
	h.TID = ib.TID(a.tid)
	p.MAD.SetHeader(h)
	p.MAD.SetMKey(q.key)
	if p.MAD.IsSMP() {
		p.QP = 0
	}
	if hasKey && q.data != nil {
		q.data(keyed.Attribute(&p.MAD))
	}
	copy(p.MAD[64:], q.body)
	a.at.UsePKey(q.pkey)
	var answer *mad.MAD
	for _, got := range a.at.Exchange([]transport.Packet{p}, nil) {
		if got.MAD.Method() == mad.MethodGetResp && got.MAD.TID()&tidMask == h.TID && !got.Undelivered {
			m := got.MAD
			answer = &m
		}
	}
	a.site.Collect()
	return answer
}

// tidMask holds the bits of a transaction id that a station may choose.
const tidMask = 1<<48 - 1

// keyShown asks a device for its key of a class, and returns the key in the answer, zero if there is none.
func (a *attacker) keyShown(q gmp) ib.MKey {
	keyed, _ := mad.LookupKeyClass(q.class)
	q.set, q.attr, q.mod, q.data = false, keyed.KeyAttr, 0, nil
	m := a.request(q)
	if m == nil || m.Status() != mad.StatusOK {
		return ib.MKey{}
	}
	var info mad.N2NKeyInfo // the three have the same places
	a.site.scene.Must(mad.Decode(keyed.Attribute(m), &info))
	return info.ManagerKey
}

// way is one by which a GMP of h1 reaches a device.
type way struct {
	to   string
	pkey ib.PKey
	what string
}

// shared is a site with keys of classes in which h3 serves tenants A and B. Its switches check only the base of incoming
// P_Keys. So a limited member can call itself full, and reaches limited members.
func shared() SiteOptions {
	o := SiteOptions{
		Tenants:   []Tenant{{"A", keyA, []string{"h1", "h5", "h3"}}, {"B", keyB, []string{"h2", "h6", "h3"}}},
		ClassKeys: true,
	}
	*o.device() = sim.Modern()
	o.device().InboundBaseOnly = true
	return o
}

// ways are those by which h1 reaches devices that are not its own.
func (t *Site) ways() []way {
	return []way{
		{"h3", keyA, "a server that it shares with tenant B"},
		{"sm", ib.DefaultPKeyLimited, "the adapter of the manager"},
		{t.SwitchPort("h1", 1).Node, ib.DefaultPKeyFull, "its switch, as the full member that it is not"},
		{t.SwitchPort("h6", 1).Node, ib.DefaultPKeyFull, "the switch of h6, likewise"},
		{"spine1", ib.DefaultPKeyFull, "a spine switch, likewise"},
	}
}

// wrongMKey returns a test for events about SMPs of a host with a wrong M_Key, or none.
func (t *Site) wrongMKey(host string) func(sm.Event) bool {
	place := t.Place(host, 1)
	return is(func(e *violation.Violation) bool { return e.Kind == violation.BadMKey && e.Place == place })
}

// wrongClassKey returns a test for events about MADs of a host with a wrong key of a class that a device has counted.
func (t *Site) wrongClassKey(kind violation.Kind, host, device string) func(sm.Event) bool {
	place, reporter := t.Place(host, 1), t.GUID(device, t.endPortOf(device))
	return is(func(e *violation.Violation) bool {
		return e.Kind == kind && e.Place == place && e.Reporter == reporter && e.Verdict == violation.Confirmed
	})
}

// refusedBy returns a test for the event about MADs with a wrong key that a device has counted.
func (t *Site) refusedBy(device string, kind keys.Kind) func(sm.Event) bool {
	guid := t.GUID(device, t.endPortOf(device))
	return is(func(e *sm.ClassKeyViolation) bool { return e.GUID == guid && e.Kind == kind && e.Count > 0 })
}
