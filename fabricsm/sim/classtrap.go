package sim

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// issuerGIDOffset is where a notice in a GMP has the GID of its issuer.
const issuerGIDOffset = 64

// sendKeyTrap reports a MAD with a wrong key to the address in the ClassPortInfo of the class. Without a LID there, it
// sends nothing.
func (a *classAgent) sendKeyTrap(number mad.TrapNum, fl *flight) {
	if a.traps.TrapLID == 0 || a.port.info.LID == 0 {
		return
	}
	var data [mad.DataSize]byte
	m, head := &fl.mad, mad.NoticeHeader{Type: mad.NoticeSecurity, IssuerLID: a.port.info.LID}
	if a.class.Class == mad.ClassCongestionControl {
		head.IsGeneric, head.ProducerType, head.TrapNumber = true, uint32(a.port.node.typ), number
		must(mad.Encode(data[:], &mad.NoticeKeyCC{
			NoticeHeader: head, SLID: fl.slid, Method: m.Method(), AttributeID: m.Attr(), AttributeModifier: m.Mod(),
			QP: fl.sqp, CCKey: m.MKey(),
		}))
	} else {
		head.ProducerType = mad.OUINVIDIA // a vendor's notice [sim]
		must(mad.Encode(data[:], &mad.NoticeKeyVS{
			NoticeHeader: head, SLID: fl.slid, Method: m.Method(), AttributeID: m.Attr(), AttributeModifier: m.Mod(),
			QP: fl.sqp, Key: m.MKey(), TrapNumberInPayload: uint16(number),
		}))
	}
	a.port.node.pace(&pendingTrap{from: a.port, agent: a, number: number, about: a.port.num, data: data})
}

// trapFlight is a trap of the class on its way. That it shows the key of the
// device is [sim].
func (a *classAgent) trapFlight(t *pendingTrap) flight {
	fl := flight{
		from: t.from, slid: t.from.info.LID, dlid: a.traps.TrapLID,
		sqp: 1, dqp: a.traps.TrapQP, key: a.traps.TrapPKey,
	}
	if !fl.key.Valid() {
		fl.key = t.from.firstPKey()
	}
	fl.mad.SetHeader(mad.Header{
		Class: a.class.Class, ClassVersion: a.class.Version, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: t.tid,
	})
	fl.mad.SetMKey(ib.NewMKey(a.keys.current))
	at := a.class.Attribute(&fl.mad)
	copy(at, t.data[:])
	gid := ib.MakeGID(t.from.info.GIDPrefix, t.from.guid)
	copy(at[issuerGIDOffset:], gid[:])
	return fl
}

// NotifyNeighbors makes a switch notify its neighbours of a failed link. It sends a MAD of class 0x0C to each entry of
// NeighborsInfo, with the key that it has for it. Method and attribute are [sim].
func (f *Fabric) NotifyNeighbors(node string) error {
	return f.change("notify neighbours", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		if n.sw == nil {
			return fmt.Errorf("%q is no switch", n.name)
		}
		from := n.ports[0]
		a := from.classAgent(mad.ClassVendorN2N)
		if a == nil {
			return fmt.Errorf("%q does not know class %v", n.name, mad.ClassVendorN2N)
		}
		for block, info := range a.neighbors {
			for i := range neighborsIn(info) {
				to := &info.Neighbor[i]
				if to.LID == 0 || block == 0 && i == 0 {
					continue
				}
				f.nextTID++
				fl := flight{from: from, slid: from.info.LID, dlid: to.LID, sqp: 1, dqp: 1, key: from.firstPKey()}
				fl.mad.SetHeader(mad.Header{
					Class: a.class.Class, ClassVersion: a.class.Version, Method: mad.MethodSend, Attr: mad.AttrNotice, TID: ib.TID(f.nextTID),
				})
				fl.mad.SetMKey(to.Key)
				f.queue = append(f.queue, fl)
			}
		}
		return nil
	})
}

// ClassKey is the state of a device for a management class with a key.
type ClassKey struct {
	Key            ib.MKey // the current one
	Previous       ib.MKey // also accepted; none if the current one is confirmed
	Protect        bool
	LeasePeriod    uint16 // seconds
	Violations     uint16
	NodeViolations uint16 // class 0x0C
	Notified       uint64 // class 0x0C: MADs of neighbours that showed the right key
}

// ClassSetting returns the last value that was set at an end port for an attribute of a class, such as one of congestion
// control; nil if there is none. It is for attributes that the port only stores.
func (f *Fabric) ClassSetting(node string, num ib.PortNum, c mad.Class, attr mad.AttrID, mod uint32) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil || !p.isEnd() {
		return nil
	}
	a := p.classAgent(c)
	if a == nil {
		return nil
	}
	return slices.Clone(a.settings[setting{attr, mod}])
}

// ClassKey returns the state of an end port for a class; false means that its device does not know the class.
func (f *Fabric) ClassKey(node string, num ib.PortNum, c mad.Class) (ClassKey, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil || !p.isEnd() {
		return ClassKey{}, false
	}
	a := p.classAgent(c)
	if a == nil {
		return ClassKey{}, false
	}
	a.lapse()
	return ClassKey{
		Key: ib.NewMKey(a.keys.current), Previous: ib.NewMKey(a.keys.previous), Protect: a.protect, LeasePeriod: a.period,
		Violations: a.violations, NodeViolations: a.nodeViolations, Notified: a.notified,
	}, true
}
