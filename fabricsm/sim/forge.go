package sim

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Forged is a management datagram with freely chosen headers, which expects no answer. It stands for a modified driver or
// another compromised adapter. Programs that expect answers use a Station.
type Forged struct {
	MAD      mad.MAD
	SLID     ib.LID
	DLID     ib.LID
	SQP, DQP uint32
	PKey     ib.PKey // of a GMP; SMPs have none
	SL       ib.SL
	GRH      *GRH // of a GMP, nil: none
}

// InjectMAD sends a forged datagram from a port.
func (f *Fabric) InjectMAD(from Endpoint, m Forged) error {
	return f.change("inject MAD", func() error {
		p, err := f.findPort(from.Node, from.Port)
		if err != nil {
			return err
		}
		f.forge(p, &m)
		return nil
	})
}

func (f *network) forge(p *port, m *Forged) {
	f.stats.Sent++
	if !wellFormed(&m.MAD) {
		f.stats.Malformed++
		return
	}
	if p.node.bars(&m.MAD) {
		f.stats.Barred++
		return
	}
	f.queue = append(f.queue, flight{
		mad: m.MAD, from: p, slid: m.SLID, dlid: m.DLID, sqp: m.SQP, dqp: m.DQP, key: m.PKey, sl: m.SL, grh: m.GRH,
	})
}

// Flood is a datagram that a port sends over and over.
type Flood struct {
	fabric  *Fabric
	from    *port
	mad     Forged
	perTick int
}

// Flood sends perTick copies of a forged datagram in each Advance, with TIDs that count up, until Stop.
func (f *Fabric) Flood(from Endpoint, m Forged, perTick int) (*Flood, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(from.Node, from.Port)
	if err == nil && perTick < 1 {
		err = errors.New("want one datagram a tick or more")
	}
	if err != nil {
		return nil, fmt.Errorf("start flood: %w", err)
	}
	fl := &Flood{fabric: f, from: p, mad: m, perTick: perTick}
	f.floods = append(f.floods, fl)
	return fl, nil
}

// send is called with mu held.
func (fl *Flood) send() {
	for range fl.perTick {
		fl.mad.MAD.SetTID(fl.mad.MAD.TID() + 1)
		fl.fabric.forge(fl.from, &fl.mad)
		fl.fabric.run()
	}
}

// Stop ends the flood. It is idempotent.
func (fl *Flood) Stop() {
	f := fl.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	f.floods = slices.DeleteFunc(f.floods, func(o *Flood) bool { return o == fl })
}

// RogueSM makes a node claim to be a subnet manager: its IsSM bit is set, and it answers a Get of SMInfo with info, unless
// a Station of a subnet manager sits there. nil ends it.
func (f *Fabric) RogueSM(node string, info *mad.SMInfo) error {
	return f.change("rogue SM", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		if n.sm = nil; info != nil {
			claimed := *info
			n.sm = &claimed
		}
		for _, p := range n.ports {
			if p != nil && p.isEnd() {
				p.setIsSM(info != nil)
			}
		}
		return nil
	})
}

// playsSM answers as a subnet manager, if the node pretends to be one.
func (n *node) playsSM(m *mad.MAD) bool {
	if n.sm == nil || n.firewalled() || m.Attr() != mad.AttrSMInfo || m.Method() != mad.MethodGet {
		return false
	}
	clear(m.Data())
	must(mad.Encode(m.Data(), n.sm))
	return true
}

// Lie makes a port report a false NodeInfo, until its node reboots or gets other GUIDs. The local port number stays true,
// because the way back of the answer does not depend on it.
func (f *Fabric) Lie(node string, num ib.PortNum, info mad.NodeInfo) error {
	return f.change("lie", func() error {
		p, err := f.findPort(node, num)
		if err != nil {
			return err
		}
		info.LocalPortNum = num
		if err := mad.Encode(p.nodeInfo[:], &info); err != nil {
			return fmt.Errorf("NodeInfo: %w", err)
		}
		return nil
	})
}
