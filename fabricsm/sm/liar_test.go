package sm_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// liar answers a request in place of a node. rest is what is left of the
// directed route behind the node; false lets the node itself answer.
type liar func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool)

// lie returns the answer of the first liar on the way of a request.
func (e *env) lie(r *sm.Request) (mad.MAD, bool) {
	route := r.MAD.Route()
	at := e.list.Find("sm")
	for i := 0; len(e.hostile) > 0 && at != nil; i++ {
		if f := e.hostile[at.Name]; f != nil {
			var rest []ib.PortNum
			for j := i; j < route.Len(); j++ {
				rest = append(rest, route.At(j))
			}
			return f(rest, r)
		}
		if i == route.Len() {
			break
		}
		at = e.list.Find(at.Ports[route.At(i)].Peer)
	}
	return mad.MAD{}, false
}

// answer is a well-formed answer with data.
func answer[T any](r *sm.Request, data *T) (mad.MAD, bool) {
	m := r.MAD
	m.Respond(mad.StatusOK)
	if err := mad.Encode(m.Data(), data); err != nil {
		panic(err)
	}
	return m, true
}

// turnInto has a host's adapter go away and come back as f.
func turnInto(e *env, h *endPort, f liar) {
	e.fab.Unlink(h.node.Name, h.num)
	e.arrive(e.st.Take(nil))
	e.run(100 * time.Millisecond)
	if e.hostile == nil {
		e.hostile = map[string]liar{}
	}
	e.hostile[h.node.Name] = f
	e.fab.Relink(h.node.Name, h.num, h.peer, h.pnum)
	e.arrive(e.st.Take(nil))
}

// says has a node answer NodeInfo of its choice, and the rest by itself.
func says(ni mad.NodeInfo) liar {
	ni.BaseVersion, ni.ClassVersion = 1, 1
	return func(rest []ib.PortNum, r *sm.Request) (mad.MAD, bool) {
		if r.MAD.Attr() != mad.AttrNodeInfo || len(rest) > 0 {
			return mad.MAD{}, false
		}
		return answer(r, &ni)
	}
}

func places(hs []endPort) (out []ib.Place) {
	for _, h := range hs {
		out = append(out, h.place)
	}
	return out
}

// wantShut wants a switch port that passes nothing unchecked.
func wantShut(t *testing.T, e *env, h *endPort) {
	t.Helper()
	pi := e.fab.PortInfo(h.peer, h.pnum)
	if pi.PortState == ib.PortActive && !(pi.PartitionEnforcementInbound && pi.PartitionEnforcementOutbound) {
		t.Errorf("%s port %d is Active and checks no P_Keys", h.peer, h.pnum)
	}
}
