package perfmgr

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
)

// Agent is what answers at a LID for ports: a switch for all its external ports, each port of another node for itself.
type Agent struct {
	GUID  ib.GUID      // of the node
	At    ib.PortNum   // which port of the node answers: 0 of a switch
	LID   ib.LID       // of that port
	Ports []ib.PortNum // those with a link
}

// key is what an agent is known by: its LID may change.
type key struct {
	guid ib.GUID
	at   ib.PortNum
}

// agent is the known state of an Agent.
type agent struct {
	Agent
	ports  []port // by number
	listed bool
	gone   time.Time // since when it is not listed

	offer offer
	asked bool // its ClassPortInfo was read

	pass  uint64 // that has read it last
	fails int    // requests in a row without an answer
	again time.Time
	slot  int // of the window, none: it is not being read
}

const none = -1

// forget is how long what is known of an agent is kept while it is out of the fabric.
const forget = time.Hour

// list takes which ports have a link. It reports whether other ports have it than before.
func (a *agent) list(with []ib.PortNum) bool {
	if a.same(with) {
		return false
	}
	for i := range a.ports {
		a.ports[i].listed = false
	}
	a.ports = slices.Grow(a.ports, max(0, len(with)-len(a.ports)))
	for _, num := range with {
		i, ok := a.find(num)
		if !ok {
			a.ports = slices.Insert(a.ports, i, port{num: num})
		}
		a.ports[i].listed = true
	}
	return true
}

// find returns where a port is, or belongs.
func (a *agent) find(num ib.PortNum) (int, bool) {
	return slices.BinarySearchFunc(a.ports, num, func(p port, n ib.PortNum) int { return int(p.num) - int(n) })
}

func (a *agent) same(with []ib.PortNum) bool {
	n := 0
	for i := range a.ports {
		if a.ports[i].listed {
			n++
			if n > len(with) || with[n-1] != a.ports[i].num {
				return false
			}
		}
	}
	return n == len(with)
}

// next returns the index of the first port with a link from i on.
func (a *agent) next(i int) (int, bool) {
	for ; i < len(a.ports); i++ {
		if a.ports[i].listed {
			return i, true
		}
	}
	return 0, false
}

// requests returns how many requests it takes to read the agent.
func (a *agent) requests() int {
	n := 0
	for i := range a.ports {
		if a.ports[i].listed {
			n++
		}
	}
	switch {
	case n == 0:
		return 0
	case !a.asked:
		return 1 + 2*n
	default:
		return n * a.offer.requests()
	}
}
