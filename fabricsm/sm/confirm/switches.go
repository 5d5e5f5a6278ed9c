package confirm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Switches finds out which switches hold their settings. Use NewSwitches.
type Switches struct {
	fabric Fabric
	topo   *topo.Builder
	queue  *work.Queue
}

// NewSwitches returns the switches of a fabric.
func NewSwitches(f Fabric, t *topo.Builder, q *work.Queue) Switches {
	return Switches{fabric: f, topo: t, queue: q}
}

// Awaits reports work on a switch that has to wait until it has its LID.
func (s *Switches) Awaits(x work.Ref, id topo.NodeID) bool {
	if !s.fabric.Switch(id).unsure || !s.fabric.IsWriting() || s.HasLID(id) {
		return false
	}
	switch x.Class {
	case work.PKey, work.LFT, work.SLtoVL, work.MFT, work.VLArb:
		return true
	case work.Set:
		return s.fabric.Port(x.Port()).Num != 0
	default:
		return false
	}
}

// HasLID reports whether port 0 of a switch was seen with the LID it is to have, also if that is none.
func (s *Switches) HasLID(id topo.NodeID) bool {
	pt := s.fabric.Port(s.topo.Node(id).FirstPort)
	return pt.IsRead && pt.Info.LID == pt.LID
}

// Hold puts work off until the switch has its LID.
func (s *Switches) Hold(x work.Ref, id topo.NodeID) {
	sw := s.fabric.Switch(id)
	sw.held = append(sw.held, x)
	s.queue.MarkPort(work.Set, s.topo.Node(id).FirstPort)
}

// See takes a PortInfo of a switch that is not sure.
func (s *Switches) See(p topo.PortID, byGet bool) {
	pt := s.fabric.Port(p)
	id := pt.Node
	sw := s.fabric.Switch(id)
	if !sw.unsure || s.topo.Node(id).Type != ib.NodeSwitch {
		return
	}
	first := s.topo.Node(id).FirstPort
	if p != first && pt.Info.PortState >= ib.PortArmed {
		sw.armed = true
		if byGet && !sw.written {
			s.trust(id) // nothing was written that could have been lost
			return
		}
	}
	if !s.HasLID(id) && s.fabric.IsWriting() {
		return
	}
	if p == first {
		s.release(id)
	}
	if sw.armed && !sw.proving {
		s.queue.MarkPort(work.Info, first)
	}
}

// release lets the work go on that waited for the LID of a switch.
func (s *Switches) release(id topo.NodeID) {
	sw := s.fabric.Switch(id)
	waiting := sw.held
	sw.held = nil
	s.queue.PutBackAll(waiting)
	s.queue.MarkNode(work.Switch, id)
}

// isAnyArmed reports whether a link of a switch is Armed or Active, as far as is known.
func (s *Switches) isAnyArmed(id topo.NodeID) (any bool) {
	s.topo.EachExternal(id, func(p topo.PortID) {
		pt := s.fabric.Port(p)
		any = any || pt.IsRead && pt.Info.PortState >= ib.PortArmed && portset.IsUp(pt.Info) && s.topo.Peer(p) != topo.None
	})
	return any
}

// Ask records that the Get of PortInfo that goes out now can prove that a switch lost nothing.
func (s *Switches) Ask(p topo.PortID) {
	pt := s.fabric.Port(p)
	sw := s.fabric.Switch(pt.Node)
	sw.proving = sw.unsure && sw.armed && pt.Num == 0 && s.HasLID(pt.Node) && s.isAnyArmed(pt.Node)
}

// Answered takes the LID in the answer.
func (s *Switches) Answered(p topo.PortID, lid ib.LID) {
	pt := s.fabric.Port(p)
	sw := s.fabric.Switch(pt.Node)
	if pt.Num != 0 || !sw.proving {
		return
	}
	sw.proving = false
	if lid == pt.LID {
		s.trust(pt.Node)
	}
}

// trust records that a switch holds its settings.
func (s *Switches) trust(id topo.NodeID) {
	sw := s.fabric.Switch(id)
	sw.unsure, sw.proving = false, false
	s.release(id)
	s.topo.EachExternal(id, func(p topo.PortID) {
		if peer := s.topo.Peer(p); peer != topo.None && s.fabric.Port(p).IsSeen {
			s.queue.MarkPort(work.Set, p)
			s.queue.MarkPort(work.Set, peer)
		}
	})
	s.fabric.JudgeNode(id)
}
