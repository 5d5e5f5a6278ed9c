package sa

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
)

// Front limits packets of all classes except 0x03: unsolicited SMPs, and general management of the other classes. Expected
// responses do not pass through it, so a flood cannot affect the Subnet Manager's own requests. Like an [Agent] it is for
// one goroutine, which may differ from the agent's.
type Front struct {
	limiter *limiter.Limiter
	limits  limiter.Config
	book    *portindex.Book
	wrongs  *trust.Violations
	tellAt  time.Time // when dropped packets are reported; zero: there are none
	shown   []trust.Violation
	senders senders
	ways    [limiter.NumRoutes]ib.Place // by which the last directed route of an unknown sender came
}

// FrontStatus is how a Front stands. It is not written to once it was given.
type FrontStatus struct {
	Limiter    [limiter.NumLanes][limiter.NumVerdicts]uint64
	Violations []trust.Violation // floods, in the order in which they began
}

// Status returns the current status, with the floods that Tell has counted.
func (f *Front) Status() FrontStatus {
	if f.wrongs.Changed() {
		f.shown = f.wrongs.List()
	}
	return FrontStatus{Limiter: totalsOf(f.limiter), Violations: f.shown}
}

// totalsOf counts packets by lane and verdict.
func totalsOf(l *limiter.Limiter) (all [limiter.NumLanes][limiter.NumVerdicts]uint64) {
	for lane := range all {
		for v := range all[lane] {
			all[lane][v] = l.Total(limiter.Lane(lane), limiter.Verdict(v))
		}
	}
	return all
}

// NewFront creates a separate one, without an agent. Before the first Look each LID counts by itself.
func NewFront(cfg limiter.Config) (*Front, error) {
	l, err := limiter.New(cfg)
	if err != nil {
		return nil, err
	}
	l.SetNodes(limiter.EachLID())
	return &Front{
		limiter: l, limits: cfg, book: portindex.Empty(portindex.Rules{}), wrongs: trust.NewViolations(trust.Bounds{Rows: 1024}),
	}, nil
}

// Look has ports and tenants count as a sight has them, and takes its limits.
func (f *Front) Look(s *Sight) {
	if f.limits != s.limits && f.limiter.Configure(s.limits) == nil {
		f.limits = s.limits
	}
	f.senders = s.senders
	if s.serving {
		f.book = s.book
		f.limiter.SetNodes(s.nodes)
	}
}

// Admit reports whether an unsolicited packet is looked at. It does not allocate.
func (f *Front) Admit(now time.Time, p *transport.Packet) bool {
	m := &p.MAD
	asked := limiter.Packet{LID: p.LID, Class: m.Class(), Method: m.Method(), Length: len(m)}
	if p.LID == ib.PermissiveLID {
		f.find(m, &asked)
	}
	if f.limiter.Admit(now, asked) == limiter.Pass {
		return true
	}
	if f.tellAt.IsZero() {
		f.tellAt = now.Add(tellEvery)
	}
	return false
}

// find returns the sender of a directed route.
func (f *Front) find(m *mad.MAD, asked *limiter.Packet) {
	s := f.senders.of(m)
	if s.port != topo.None {
		if lid := f.senders.fabric.Port(s.port).LID; lid.IsUnicast() {
			asked.LID, asked.Manager = lid, m.Attr() == mad.AttrSMInfo && f.senders.manager(s.port)
			return
		}
	}
	asked.Route = s.way()
	f.ways[asked.Route] = s.behind
}

// Next returns the time at which Tell has events to report; zero: never.
func (f *Front) Next() time.Time { return f.tellAt }

// Report reports dropped packets, if it is time. The events of the suppression sequence are loud. The other drops are
// reported quietly a second later, with exact counts.
func (f *Front) Report(now time.Time) (events []sm.Event) {
	if f.tellAt.IsZero() || now.Before(f.tellAt) {
		return nil
	}
	f.tellAt = time.Time{}
	tell := func(v *trust.Violation) { events = append(events, &Violation{Violation: *v}) }
	if f.wrongs.Report(tell) {
		f.tellAt = now.Add(tellEvery)
	}
	f.limiter.Told(func(d limiter.Drops) {
		dropped := flood(&d, f.book)
		switch {
		case d.LID == ib.PermissiveLID:
			dropped.Place = f.ways[d.Route]
		case dropped.Port == nil:
			dropped.Port = f.senders.endPort(d.LID)
		}
		if dropped.Port != nil {
			dropped.Place = f.placeOf(dropped.Port.Port)
			dropped.Who.Port, dropped.Who.As = dropped.Port.Port, dropped.Port.GUID
		}
		row, loud := f.wrongs.Note(now, dropped)
		if loud {
			tell(&row)
		} else {
			f.tellAt = now.Add(tellEvery)
		}
	})
	return events
}

// placeOf returns the switch port in front of an end port, and for a switch its own.
func (f *Front) placeOf(p topo.PortID) ib.Place {
	fabric := f.senders.fabric
	if n := fabric.NodeOf(p); n.Type == ib.NodeSwitch {
		return ib.Place{Switch: n.GUID}
	}
	return fabric.PlaceOf(p)
}

// Total is how many packets of a lane met a verdict.
func (f *Front) Total(in limiter.Lane, v limiter.Verdict) uint64 { return f.limiter.Total(in, v) }

// Dropped is how many packets it dropped.
func (f *Front) Dropped() (n uint64) {
	for in := range limiter.NumLanes {
		for v := int(limiter.Pass) + 1; v < limiter.NumVerdicts; v++ {
			n += f.limiter.Total(limiter.Lane(in), limiter.Verdict(v))
		}
	}
	return n
}
