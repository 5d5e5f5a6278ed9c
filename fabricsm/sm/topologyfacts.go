package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
)

const (
	// FactTopologyMode: the subnet manager at the port GUID put a mode of the declared topology into force, Since when;
	// Mark names the mode and the content. None takes it back.
	FactTopologyMode FactKind = "topology-mode"
	// FactTopology: Port of the switch GUID was switched off by the declared topology because of the device Seen there;
	// Mark is the verdict, or releasedMark when it is to be switched on again and was not yet. None takes it back.
	FactTopology FactKind = "topology"
)

const releasedMark = "released"

// lawMark names a mode and the content it is in force for.
func lawMark(spec *topospec.Spec, m topospec.Mode) string {
	if spec == nil {
		return ""
	}
	return fmt.Sprintf("%v %v", m, spec.Digest())
}

// savedLaws is the saved state of a declared topology.
type savedLaws struct {
	mode  string
	since time.Time // of mode
	ports []*Fact   // that were switched off, by the order in which they were saved
}

func savedLaw(facts []Fact) (s savedLaws) {
	index := make(map[ib.Place]int)
	for i := range facts {
		f := &facts[i]
		switch f.Kind {
		case FactTopologyMode:
			s.mode, s.since = f.Mark, f.Since
		case FactTopology:
			at := ib.Place{Switch: f.GUID, Port: f.Port}
			if j, ok := index[at]; ok {
				s.ports[j] = f
				continue
			}
			index[at] = len(s.ports)
			s.ports = append(s.ports, f)
		default:
		}
	}
	return s
}

// restoreLaw takes a port that was switched off before a restart.
func (c *Core) restoreLaw(f *Fact) {
	l := &c.law
	if f.Mark == "" {
		return
	}
	at := ib.Place{Switch: f.GUID, Port: f.Port}
	var v judge.Verdict
	s, err := parseSeen(f.Seen)
	if err == nil && f.Mark != releasedMark {
		err = v.UnmarshalText([]byte(f.Mark))
	}
	s.At = at
	if err == nil && f.Mark != releasedMark && l.judge != nil && l.judge.Restore(s, v) {
		row := l.row(&judge.Change{At: at, To: judge.StateDisabled, Seen: s, Ruling: judge.Ruling{Verdict: v, Action: judge.Disable, State: judge.StateDisabled}})
		row.Since, row.saved = f.Since, true
		l.rows.put(row)
		c.faults.Set(fault.Key{Kind: fault.TopologyBroken, Place: at}, row.Text)
		return
	}
	c.reopenLater(at)
}

// reopenLater has a port switched on that was switched off, if need be after a restart.
func (c *Core) reopenLater(at ib.Place) {
	c.law.letGo[at] = false
	c.save(Fact{Kind: FactTopology, GUID: at.Switch, Port: at.Port, Mark: releasedMark})
}

// mayBeOff reports whether a port is to be switched on, and was not read since: the Set that switched it off may have had
// no answer.
func (c *Core) mayBeOff(p topo.PortID) bool {
	if len(c.law.letGo) == 0 {
		return false
	}
	read, ok := c.law.letGo[c.topo.PlaceOf(p)]
	return ok && !read
}

// reread takes that a port was read.
func (c *Core) reread(p topo.PortID) {
	if c.topo.IsExternal(p) && c.mayBeOff(p) {
		c.law.letGo[c.topo.PlaceOf(p)] = true
		c.q.MarkPort(work.Set, p)
	}
}

// isOpen takes that a port is not switched off.
func (c *Core) isOpen(p topo.PortID) {
	if len(c.law.letGo) == 0 {
		return
	}
	at := c.topo.PlaceOf(p)
	if _, ok := c.law.letGo[at]; ok {
		delete(c.law.letGo, at)
		c.save(Fact{Kind: FactTopology, GUID: at.Switch, Port: at.Port})
	}
}

// saveLaw makes it survive a restart that a port is switched off, or no longer is.
func (c *Core) saveLaw(at ib.Place) {
	l := &c.law
	if l.trial {
		return // nothing is written yet
	}
	st, v, s := l.judge.At(at)
	if st != judge.StateDisabled {
		c.reopenLater(at)
		return
	}
	delete(l.letGo, at)
	c.save(Fact{Kind: FactTopology, GUID: at.Switch, Port: at.Port, Mark: v.String(), Seen: formatSeen(&s), Since: c.now.UTC().Truncate(time.Second)})
}

// saveMode makes it survive a restart which mode is in force.
func (c *Core) saveMode() {
	f := Fact{Kind: FactTopologyMode, GUID: c.cfg.PortGUID}
	if l := &c.law; l.judge != nil {
		f.Mark, f.Since = lawMark(l.judge.Spec(), l.judge.Mode()), l.since.UTC().Truncate(time.Second)
	}
	if c.law.rows.mode != f.Mark {
		c.law.rows.mode = f.Mark
		c.save(f)
	}
}

func formatSeen(s *judge.Seen) string {
	return fmt.Sprintf("%#x %d %d %d %#x %#x", uint64(s.GUID), s.Port, s.Type, s.NumPorts, uint64(s.PortGUID), uint64(s.SystemImage))
}

func parseSeen(text string) (s judge.Seen, err error) {
	var guid, port, image uint64
	var num, kind, ports uint8
	if _, err := fmt.Sscanf(text, "%v %d %d %d %v %v", &guid, &num, &kind, &ports, &port, &image); err != nil {
		return s, fmt.Errorf("what was seen: %.80q: want GUID, port, type, number of ports, port GUID and system image", text)
	}
	return judge.Seen{
		GUID: ib.GUID(guid), Port: ib.PortNum(num), Type: ib.NodeType(kind), NumPorts: ports,
		PortGUID: ib.GUID(port), SystemImage: ib.GUID(image),
	}, nil
}
