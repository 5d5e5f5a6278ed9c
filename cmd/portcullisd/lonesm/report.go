package lonesm

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"portcullis/cmd/internal/terminal"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// phases are the moments of a bring-up that the core reports.
type phases struct{ attached, master, routed, settled time.Time }

func (p *phases) event(now time.Time, e sm.Event) {
	switch e := e.(type) {
	case *sm.StateChanged:
		if p.attached.IsZero() {
			p.attached = now
		}
		if e.State == ib.SMMaster && p.master.IsZero() {
			p.master = now
		}
	case *sm.Routed:
		p.routed = now
	case *sm.Settled:
		p.settled = now
	default:
	}
}

// Report is what "portcullisd sm --once" says.
type Report struct {
	Nodes    NodeCount    `json:"nodes"`
	Ports    PortCount    `json:"ports"`
	Engine   string       `json:"routing_engine"`
	SMPs     smpReport    `json:"smps"`
	Seconds  phaseSeconds `json:"seconds"`
	Problems []string     `json:"problems"`
}

type NodeCount struct {
	Switches int `json:"switches"`
	CAs      int `json:"cas"`
	Routers  int `json:"routers"`
}

// PortCount counts ports of which the far end is seen; Active are those of
// them that carry data.
type PortCount struct {
	Cabled int `json:"cabled"`
	Active int `json:"active"`
}

type smpReport struct {
	Total uint64      `json:"total"`
	Kinds []kindCount `json:"kinds"`
}

// kindCount is how many requests of a kind were sent; First and Last are
// seconds since the start of the process.
type kindCount struct {
	Method    string  `json:"method"`
	Attribute string  `json:"attribute"`
	State     string  `json:"state,omitempty"`
	Sent      uint64  `json:"sent"`
	First     seconds `json:"first_seconds"`
	Last      seconds `json:"last_seconds"`
}

// phaseSeconds divides the time from the start of the process to the settled
// fabric by what the core was busy with. Within the phases work overlaps: LIDs
// and P_Keys are set while routes are computed.
type phaseSeconds struct {
	Attach    seconds `json:"attach"`    // until the core was started
	Discovery seconds `json:"discovery"` // until every node and port was read
	Routing   seconds `json:"routing"`   // until the last tables were computed and checked
	Rest      seconds `json:"rest"`      // until they were written and ports active
	Total     seconds `json:"total"`
}

// seconds are printed with microseconds.
type seconds float64

func secondsOf(d time.Duration) seconds { return seconds(d.Round(time.Microsecond).Seconds()) }

func (s seconds) String() string { return fmt.Sprintf("%.6f", float64(s)) }

func (s *manager) report(v *sm.View) *Report {
	p := &s.phases
	r := &Report{
		Seconds: phaseSeconds{
			Attach:    secondsOf(p.attached.Sub(s.began)),
			Discovery: secondsOf(p.master.Sub(p.attached)),
			Routing:   secondsOf(p.routed.Sub(p.master)),
			Rest:      secondsOf(p.settled.Sub(p.routed)),
			Total:     secondsOf(p.settled.Sub(s.began)),
		},
		Problems: append([]string{}, v.Problems...),
	}
	if p.routed.IsZero() { // nothing to route: one CA and no switch, or no tables accepted
		r.Seconds.Routing, r.Seconds.Rest = 0, secondsOf(p.settled.Sub(p.master))
	}
	if v.Tables != nil {
		r.Engine = v.Tables.Engine
	}
	r.Problems = append(r.Problems, s.routing.Notes...)
	if s.partitions != nil {
		r.Problems = append(r.Problems, s.partitions.Missing()...)
	}
	r.count(v.Fabric)
	r.SMPs = s.wire.report()
	return r
}

func (r *Report) count(f *topo.Fabric) {
	for _, n := range f.Nodes() {
		switch n.Type {
		case ib.NodeSwitch:
			r.Nodes.Switches++
		case ib.NodeCA:
			r.Nodes.CAs++
		case ib.NodeRouter:
			r.Nodes.Routers++
		default: // a tombstone
		}
	}
	for i := range f.Ports() {
		if p := f.Port(i); p.Peer != topo.None {
			r.Ports.Cabled++
			if p.State == ib.PortActive {
				r.Ports.Active++
			}
		}
	}
}

func (m *meter) report() smpReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	kinds := make([]requestKind, 0, len(m.spans))
	for k := range m.spans {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b requestKind) int {
		return cmp.Or(cmp.Compare(a.attr, b.attr), cmp.Compare(a.method, b.method), cmp.Compare(a.state, b.state))
	})
	r := smpReport{Total: m.sent, Kinds: make([]kindCount, 0, len(kinds))}
	for _, k := range kinds {
		s := m.spans[k]
		c := kindCount{Method: k.method.String(), Attribute: k.attr.String(), Sent: s.sent, First: secondsOf(s.first), Last: secondsOf(s.last)}
		if k.state != ib.PortNop {
			c.State = k.state.String()
		}
		r.Kinds = append(r.Kinds, c)
	}
	return r
}

func (r *Report) writeJSON(w io.Writer) error {
	e := terminal.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// shownProblems is how many problems the table has room for: the gravest.
const shownProblems = 10

func (r *Report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "nodes\t%d switches, %d CAs, %d routers\n", r.Nodes.Switches, r.Nodes.CAs, r.Nodes.Routers)
	fmt.Fprintf(t, "ports\t%d cabled, %d of them active\n", r.Ports.Cabled, r.Ports.Active)
	fmt.Fprintf(t, "routing\t%s\n", cmp.Or(r.Engine, "none"))
	fmt.Fprintf(t, "seconds\t%v attach, %v discovery, %v routing, %v rest, %v in all\n",
		r.Seconds.Attach, r.Seconds.Discovery, r.Seconds.Routing, r.Seconds.Rest, r.Seconds.Total)
	fmt.Fprintf(t, "SMPs\t%d\n", r.SMPs.Total)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nMETHOD\tATTRIBUTE\tSENT\tFIRST AT\tLAST AT\t\n")
	for _, k := range r.SMPs.Kinds {
		attribute := k.Attribute
		if k.State != "" {
			attribute += " " + k.State
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%v\t%v\t\n", k.Method, attribute, k.Sent, k.First, k.Last)
	}
	for _, p := range r.Problems[:min(len(r.Problems), shownProblems)] {
		fmt.Fprintf(t, "\nproblem: %s", terminal.Plain(p))
	}
	if more := len(r.Problems) - shownProblems; more > 0 {
		fmt.Fprintf(t, "\nand %d more; --json lists them", more)
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
