package attributes

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Lanes reads and writes SLtoVLMappingTable and VLArbitrationTable.
type Lanes struct{ *Parts }

// Work sends the next request for tables of a port.
func (a Lanes) Work(x work.Ref) { a.step(x, a.Lanes.Next(x)) }

// Got takes an answer.
func (a Lanes) Got(r *work.Request, m *mad.MAD, status mad.Status) { a.Lanes.Answer(r, m, status) }

// AuditMaps reads one of the SL-to-VL tables of a port in the background.
func (a Lanes) AuditMaps(p topo.PortID) {
	a.step(work.OnPort(work.SLtoVL, p), a.Lanes.AuditMaps(p))
}

// AuditShares reads half of an arbitration table of a port in the background, another each turn.
func (a Lanes) AuditShares(p topo.PortID, turn int) {
	a.step(work.OnPort(work.VLArb, p), a.Lanes.AuditShares(p, turn))
}

// step sends a request, if there is one to be sent.
func (a Lanes) step(x work.Ref, s lanes.Step) {
	if s.Method == 0 {
		return
	}
	ask := a.Requests.Ask
	if s.Audit {
		ask = a.Requests.AskAside
	}
	m := ask(x, a.nodeOf(x.Port()), s.Method, s.Attr, s.Mod)
	if s.Method == mad.MethodSet {
		s.Encode(m.Data())
	}
}
