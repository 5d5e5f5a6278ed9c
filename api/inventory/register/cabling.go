package register

import (
	"context"
	"fmt"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// maxWarnings bounds the warnings of an import: a wrong GUID of one switch may concern every cable of it.
const maxWarnings = 100

// switches is what is known of the switches that a cable may lead to.
type switches struct {
	seen     map[ib.GUID]int // external ports by GUID, 0: not known; empty: no switch was ever seen
	declared map[ib.GUID]int // the same; nil: no topology is declared
}

// cablingWarnings lists the cables of the files that lead to a switch, or a port of a switch, which neither the fabric in
// sight nor the declared topology has. They are taken: the switch may be installed later.
func (s *Service) cablingWarnings(ctx context.Context, n store.Snapshot, p *inventory.Plan) ([]string, error) {
	cables := p.Cables()
	if len(cables) == 0 {
		return []string{}, nil
	}
	k := switches{seen: map[ib.GUID]int{}}
	nodes, _, err := records.Nodes().List(ctx, n, "")
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if v := &nodes[i].Value; v.Type == ib.NodeSwitch.String() {
			k.seen[v.GUID] = v.NumPorts
		}
	}
	if s.o.Declared != nil {
		if k.declared, err = s.o.Declared(ctx, n); err != nil {
			return nil, err
		}
	}
	return k.doubts(cables), nil
}

// doubts says of each cable why it may be a mistake. Where neither a switch is seen nor a topology declared, nothing is
// known, and nothing is said.
func (k *switches) doubts(cables []inventory.Cable) []string {
	out := []string{}
	if len(k.seen) == 0 && k.declared == nil {
		return out
	}
	left := 0
	for i := range cables {
		why := k.doubt(cables[i].Place)
		if why == "" {
			continue
		}
		if len(out) == maxWarnings-1 {
			left++
			continue
		}
		c := &cables[i]
		out = append(out, fmt.Sprintf("%s: host %s: the cable of port %v leads to %v, and %s", c.At, c.Host, c.GUID, c.Place, why))
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("and %d more cables like these", left))
	}
	return out
}

// doubt says why nothing is known at a place, and what to do; "" if there is such a switch port.
func (k *switches) doubt(at ib.Place) string {
	ports, seen := k.seen[at.Switch]
	says := "the fabric in sight has"
	if !seen {
		var is bool
		if ports, is = k.declared[at.Switch]; !is {
			none := "the fabric in sight has no such switch, and no topology is declared"
			switch {
			case k.declared != nil && len(k.seen) == 0:
				none = "the declared topology has no such switch"
			case k.declared != nil:
				none = "neither the fabric in sight nor the declared topology has such a switch"
			}
			return none + ": correct the GUID; if the switch is installed later, nothing is to be done, and the host is admitted once its port is seen there"
		}
		says = "the declared topology has"
	}
	if more := k.declared[at.Switch]; more > ports && ports > 0 {
		ports, says = more, "the declared topology has" // a chassis that grows
	}
	if ports == 0 || int(at.Port) <= ports {
		return ""
	}
	return fmt.Sprintf("%s that switch with %d ports: correct the number of the port", says, ports)
}
