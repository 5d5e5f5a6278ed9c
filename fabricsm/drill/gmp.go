package drill

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/transport"
)

// GMP is a request of general management of an attacker.
type GMP struct {
	To    string // node
	PKey  ib.PKey
	Class mad.Class
	Set   bool
	Attr  mad.AttrID
	mod   uint32
	Key   ib.MKey
	Data  func([]byte) // fills the attribute, in a class that has keys; nil: zeros
	Body  []byte       // of the attribute, in one that has none and begins at byte 64
}

// EndPortOf is the number of the port that a node has a LID at.
func (t *Site) EndPortOf(node string) ib.PortNum {
	if t.List.Find(node).Type == ib.NodeSwitch {
		return 0
	}
	return 1
}

// LIDOf is the LID of a node now.
func (t *Site) LIDOf(node string) ib.LID { return t.Fabric.PortInfo(node, t.EndPortOf(node)).LID }

// ClassKey is what a node has for a class.
func (t *Site) ClassKey(node string, c mad.Class) guard.State {
	k, _ := t.Fabric.ClassKey(node, t.EndPortOf(node), c)
	return k
}

// Request sends a GMP and returns the answer, nil if there is none.
func (a *Attacker) Request(q GMP) *mad.MAD {
	h := mad.Header{Class: q.Class, ClassVersion: 1, Method: mad.MethodGet, Attr: q.Attr, Mod: q.mod}
	if q.Set {
		h.Method = mad.MethodSet
	}
	p := transport.Packet{LID: a.Site.LIDOf(q.To), QP: 1}
	keyed, hasKey := mad.LookupKeyClass(q.Class)
	if hasKey {
		h.ClassVersion = keyed.Version
	}
	a.tid++
	h.TID = ib.TID(a.tid)
	p.MAD.SetHeader(h)
	p.MAD.SetMKey(q.Key)
	if p.MAD.IsSMP() {
		p.QP = 0
	}
	if hasKey && q.Data != nil {
		q.Data(keyed.Attribute(&p.MAD))
	}
	copy(p.MAD[64:], q.Body)
	a.At.UsePKey(q.PKey)
	var answer *mad.MAD
	for _, got := range a.At.Exchange([]transport.Packet{p}, nil) {
		if got.MAD.Method() == mad.MethodGetResp && got.MAD.TID()&tidMask == h.TID && !got.Undelivered {
			m := got.MAD
			answer = &m
		}
	}
	a.Site.Collect()
	return answer
}

// KeyShown asks a device for its key of a class, and returns the key in the answer, zero if there is none.
func (a *Attacker) KeyShown(q GMP) ib.MKey {
	keyed, _ := mad.LookupKeyClass(q.Class)
	q.Set, q.Attr, q.mod, q.Data = false, keyed.KeyAttr, 0, nil
	m := a.Request(q)
	if m == nil || m.Status() != mad.StatusOK {
		return ib.MKey{}
	}
	var info mad.N2NKeyInfo // the three have the same places
	a.Site.Scene.Must(mad.Decode(keyed.Attribute(m), &info))
	return info.ManagerKey
}
