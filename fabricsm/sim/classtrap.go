package sim

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
)

// issuerGIDOffset is where a notice in a GMP has the GID of its issuer.
const issuerGIDOffset = 64

// sendClassTrap reports a MAD with a wrong key to the address in the ClassPortInfo of the class. Without a LID there, it
// sends nothing.
func (p *port) sendClassTrap(a *guard.Agent, number mad.TrapNum, fl *flight) {
	if a.Traps().TrapLID == 0 || p.info.LID == 0 {
		return
	}
	var data [mad.DataSize]byte
	a.Notice(&data, number, p.info.LID, p.node.typ, guard.Refused{MAD: &fl.mad, From: fl.slid, QP: fl.sqp})
	p.node.pace(&pendingTrap{from: p, agent: a, number: number, about: p.num, data: data})
}

// classFlight is a trap of a class with keys on its way. That it shows the key of the
// device is [sim].
func (t *pendingTrap) classFlight() flight {
	a, class, to := t.agent, t.agent.Class(), t.agent.Traps()
	fl := flight{
		from: t.from, slid: t.from.info.LID, dlid: to.TrapLID,
		sqp: 1, dqp: to.TrapQP, key: to.TrapPKey,
	}
	if !fl.key.Valid() {
		fl.key = t.from.pkeys.first()
	}
	fl.mad.SetHeader(mad.Header{
		Class: class.Class, ClassVersion: class.Version, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: t.tid,
	})
	fl.mad.SetMKey(a.Key())
	at := class.Attribute(&fl.mad)
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
		a.EachNeighbor(func(to *mad.N2NNeighbor) {
			f.nextTID++
			fl := flight{from: from, slid: from.info.LID, dlid: to.LID, sqp: 1, dqp: 1, key: from.pkeys.first()}
			fl.mad.SetHeader(mad.Header{
				Class: mad.ClassVendorN2N, ClassVersion: a.Class().Version, Method: mad.MethodSend, Attr: mad.AttrNotice, TID: ib.TID(f.nextTID),
			})
			fl.mad.SetMKey(to.Key)
			f.queue = append(f.queue, fl)
		})
		return nil
	})
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
	return a.Setting(attr, mod)
}

// ClassKey returns the state of an end port for a class; false means that its device does not know the class.
func (f *Fabric) ClassKey(node string, num ib.PortNum, c mad.Class) (guard.State, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil || !p.isEnd() {
		return guard.State{}, false
	}
	a := p.classAgent(c)
	if a == nil {
		return guard.State{}, false
	}
	return a.State(f.now), true
}
