// Package statechange finds out which ports of a switch changed when only PortStateChange is known: that some port did.
//
// Ports are read by neighbourhood, the likeliest first: where there is no link, since one that comes up is one of few; then
// those to hosts; then those to other switches. When a change was found it was most likely all, and what is left waits for
// the next step of the audit. A change between switches is reported from the other end, too.
//
// It has no clock and sends nothing. It marks which ports have to be read.
package statechange

import (
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric is what a Search asks of the core.
type Fabric interface {
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// ReadLater has PortInfo of a port read in the background.
	ReadLater(topo.PortID)
}

// Search is which ports of which switches may have changed. Use New.
type Search struct {
	fabric   Fabric
	topo     *topo.Builder
	queue    *work.Queue
	isAudit  bool          // there is an audit, for which part may be left
	switches []progress    // by topo.NodeID
	suspects []bool        // by topo.PortID: counted in progress.suspects
	later    []topo.NodeID // switches whose links the audit is to look at next
}

// progress is how far the search at a switch is.
type progress struct {
	suspects int           // ports that may have changed and are being read
	found    bool          // one of them had
	looking  neighbourhood // the next to be read
	leftFrom neighbourhood // this and those after it wait in Search.later; toNobody: none do
}

// neighbourhood is what a port of a switch leads to.
type neighbourhood uint8

const (
	toNobody neighbourhood = iota
	toHosts
	toSwitches
	neighbourhoods
)

// fewNodes and fewPorts are what there is room for at least.
const (
	fewNodes = 128
	fewPorts = 512
)

// New returns a search that has nothing to do. isAudit says whether Audit is called.
func New(f Fabric, t *topo.Builder, q *work.Queue, isAudit bool) *Search {
	return &Search{
		fabric: f, topo: t, queue: q, isAudit: isAudit,
		switches: make([]progress, 0, fewNodes), suspects: make([]bool, 0, fewPorts),
	}
}

// Extend makes room for nodes and ports.
func (s *Search) Extend(nodes, ports int) {
	s.switches = topo.ExtendNodes(s.switches, nodes)
	s.suspects = topo.ExtendPorts(s.suspects, ports)
}

// ForgetNode ends the search at a node, whose ports are forgotten, too.
func (s *Search) ForgetNode(id topo.NodeID) { s.switches[id] = progress{} }

// ForgetPort forgets that a port may have changed.
func (s *Search) ForgetPort(p topo.PortID) { s.suspects[p] = false }

// neighbourhoodOf returns what a port leads to.
func (s *Search) neighbourhoodOf(p topo.PortID) neighbourhood {
	switch peer := s.topo.Peer(p); {
	case peer == topo.None:
		return toNobody
	case s.topo.IsEndPort(peer):
		return toHosts
	default:
		return toSwitches
	}
}

// Begin looks for the ports of a switch that changed.
func (s *Search) Begin(id topo.NodeID) {
	n := &s.switches[id]
	n.found, n.looking = false, toNobody
	s.readNext(id)
}

// readNext reads the next neighbourhood that has ports.
func (s *Search) readNext(id topo.NodeID) {
	n := &s.switches[id]
	for ; n.looking < neighbourhoods && n.suspects == 0; n.looking++ {
		s.topo.EachExternal(id, func(p topo.PortID) {
			if s.neighbourhoodOf(p) != n.looking {
				return
			}
			if !s.suspects[p] {
				s.suspects[p] = true
				n.suspects++
			}
			s.queue.MarkPort(work.Info, p)
		})
	}
}

// Answer takes whether a port that was read had changed, which is of use only if it is one of those that may have.
func (s *Search) Answer(p topo.PortID, changed bool) {
	if !s.suspects[p] {
		return
	}
	id := s.topo.Port(p).Node
	n := &s.switches[id]
	s.suspects[p] = false
	n.suspects--
	n.found = n.found || changed
	switch {
	case n.suspects > 0 || n.looking == neighbourhoods:
	case n.found && n.looking > toNobody && s.isAudit: // else another change was reported in the meantime
		if n.leftFrom == toNobody {
			s.later = append(s.later, id)
			n.leftFrom = n.looking
		}
		n.leftFrom = min(n.leftFrom, n.looking)
	default:
		s.readNext(id)
	}
}

// Audit reads the ports that were left for later: those to hosts at every switch, since no other device reports them, and
// those to other switches at one switch.
func (s *Search) Audit() {
	waiting, links := s.later[:0], false
	for _, id := range s.later {
		n := &s.switches[id]
		if !s.fabric.IsAlive(id) || n.leftFrom == toNobody {
			continue
		}
		if n.leftFrom == toHosts {
			s.readLater(id, toHosts)
			n.leftFrom = toSwitches
		}
		if links {
			waiting = append(waiting, id)
			continue
		}
		s.readLater(id, toSwitches)
		n.leftFrom, links = toNobody, true
	}
	s.later = waiting
}

func (s *Search) readLater(id topo.NodeID, at neighbourhood) {
	s.topo.EachExternal(id, func(p topo.PortID) {
		if s.neighbourhoodOf(p) == at {
			s.fabric.ReadLater(p)
		}
	})
}
