package past

import (
	"strconv"
	"time"

	"portcullis/api/fabric/timeline"
	"portcullis/api/fabric/timeline/spool"
	v1 "portcullis/api/v1"
)

// Kinds of rows. Files have the numbers.
const (
	kindSwitch     timeline.Kind = 1 // by GUID: name, problem
	kindTrunk      timeline.Kind = 2 // by the end that lists it: other end, both names, state, problem
	kindPort       timeline.Kind = 3 // of a host, by switch port: node, number, host, name, state, problem
	kindHost       timeline.Kind = 4 // by id: phase, tenant, cluster
	kindProof      timeline.Kind = 5 // by switch port: host, verdict, held, end, other, cause, detail
	kindAboutHosts timeline.Kind = 6 // why kindHost is not known
	kindAboutProof timeline.Kind = 7 // why kindProof is not known; when it began, for how many seconds it counts
)

// aboutHosts and aboutProof name the rows that say why the others are not known.
var (
	aboutHosts = timeline.Key{Kind: kindAboutHosts, ID: "hosts"}
	aboutProof = timeline.Key{Kind: kindAboutProof, ID: "proof"}
)

// fields are the names of what rows have, of those that changes are listed of.
var fields = map[timeline.Kind][]string{
	kindSwitch: {"name", "problem"},
	kindTrunk:  {"other_end", "from", "to", "state", "problem"},
	kindPort:   {"node", "number", "host", "name", "state", "problem"},
	kindHost:   {"phase", "tenant", "cluster"},
	kindProof:  {"host", "verdict", "held", "end", "other", "cause", "detail"},
}

var kindNames = map[timeline.Kind]string{kindSwitch: "switch", kindTrunk: "link", kindPort: "port", kindHost: "host", kindProof: "proof"}

// Class says which readers a change counts for: what was proven is not for all of them.
func Class(k timeline.Kind) spool.Class {
	switch k {
	case kindSwitch, kindTrunk, kindPort, kindHost:
		return spool.All
	case kindProof:
		return spool.Confined
	default:
		return spool.None
	}
}

func row(k timeline.Kind, id string, texts ...string) timeline.Row {
	r := timeline.Row{Key: timeline.Key{Kind: k, ID: id}}
	copy(r.Value[:], texts)
	return r
}

func switchRow(n *v1.FabricNode) timeline.Row {
	return row(kindSwitch, n.GUID.String(), n.Name, n.Problem)
}

func trunkRow(l *v1.FabricLink) timeline.Row {
	end := func(p *v1.PortName, of string) string { return of + "/" + strconv.Itoa(int(p.Num)) }
	return row(kindTrunk, end(&l.A, l.A.Node.String()), end(&l.B, l.B.Node.String()), end(&l.A, l.A.Name), end(&l.B, l.B.Name), l.State, l.Problem)
}

func portRow(p *v1.FabricPort) timeline.Row {
	return row(kindPort, p.Place.String(), p.Node.String(), strconv.Itoa(int(p.Num)), p.Host, p.Name, p.State, p.Problem)
}

// Proof is what was proven of all ports, or why that is not known.
type Proof struct {
	Why    string // it is not known; empty: it is
	Begun  time.Time
	MaxAge time.Duration
	Ports  []v1.IsolationPortVerdict // are not written to once they were returned
}

func (p *Proof) rows() []timeline.Row {
	out := make([]timeline.Row, 0, len(p.Ports)+1)
	for i := range p.Ports {
		if v := &p.Ports[i]; !v.Place.IsZero() {
			out = append(out, row(kindProof, v.Place.String(), v.Host, v.Verdict, v.Held, v.End, v.Other, v.Cause, v.Detail))
		}
	}
	about := row(kindAboutProof, "proof", p.Why)
	if p.Why == "" {
		about.Value[1], about.Value[2] = p.Begun.UTC().Format(time.RFC3339Nano), strconv.FormatFloat(p.MaxAge.Seconds(), 'f', -1, 64)
	}
	return append(out, about)
}

// same reports whether a proof says the same as one before, without comparing each port.
func (p *Proof) same(was *Proof) bool {
	return p.Why == was.Why && p.Begun.Equal(was.Begun) && p.MaxAge == was.MaxAge && len(p.Ports) == len(was.Ports) &&
		(len(p.Ports) == 0 || &p.Ports[0] == &was.Ports[0])
}
