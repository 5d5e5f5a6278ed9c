package declared

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

const releasedMark = "released"

// markOf names a mode and the content it is in force for.
func markOf(spec *topospec.Spec, m topospec.Mode) string {
	if spec == nil {
		return ""
	}
	return fmt.Sprintf("%v %v", m, spec.Digest())
}

// savedLaws is the saved state of a declared topology.
type savedLaws struct {
	mode  string
	since time.Time // of mode
	ports []*Saved  // that were switched off, by the order in which they were saved
}

func sorted(facts []Saved) (s savedLaws) {
	index := make(map[ib.Place]int)
	for i := range facts {
		f := &facts[i]
		if f.IsMode {
			s.mode, s.since = f.Mark, f.Since
			continue
		}
		if j, ok := index[f.Place]; ok {
			s.ports[j] = f
			continue
		}
		index[f.Place] = len(s.ports)
		s.ports = append(s.ports, f)
	}
	return s
}

// restore takes a port that was switched off before a restart.
func (l *Law) restore(f *Saved) {
	if f.Mark == "" {
		return
	}
	at := f.Place
	var v verify.Verdict
	s, err := parseSeen(f.Seen)
	if err == nil && f.Mark != releasedMark {
		err = v.UnmarshalText([]byte(f.Mark))
	}
	s.At = at
	if err == nil && f.Mark != releasedMark && l.judge != nil && l.judge.Restore(s, v) {
		row := l.row(&verify.Change{At: at, To: verify.StateDisabled, Seen: s, Ruling: verify.Ruling{Verdict: v, Action: verify.Disable, State: verify.StateDisabled}})
		row.Since, row.saved = f.Since, true
		l.rows.put(row)
		l.faults.Set(fault.Key{Kind: fault.TopologyBroken, Place: at}, row.Text)
		return
	}
	l.reopenLater(at)
}

// reopenLater has a port switched on that was switched off, if need be after a restart.
func (l *Law) reopenLater(at ib.Place) {
	l.letGo[at] = false
	l.act.Save(Saved{Place: at, Mark: releasedMark})
}

// MayBeOff reports whether a port is to be switched on, and was not read since: the Set that switched it off may have had
// no answer.
func (l *Law) MayBeOff(p topo.PortID) bool {
	if len(l.letGo) == 0 {
		return false
	}
	read, ok := l.letGo[l.topo.PlaceOf(p)]
	return ok && !read
}

// Reread takes that a port was read.
func (l *Law) Reread(p topo.PortID) {
	if l.topo.IsExternal(p) && l.MayBeOff(p) {
		l.letGo[l.topo.PlaceOf(p)] = true
		l.queue.MarkPort(work.Set, p)
	}
}

// IsOpen takes that a port is not switched off.
func (l *Law) IsOpen(p topo.PortID) {
	if len(l.letGo) == 0 {
		return
	}
	at := l.topo.PlaceOf(p)
	if _, ok := l.letGo[at]; ok {
		delete(l.letGo, at)
		l.act.Save(Saved{Place: at})
	}
}

// save makes it survive a restart that a port is switched off, or no longer is.
func (l *Law) save(at ib.Place) {
	if l.trial {
		return // nothing is written yet
	}
	st, v, s := l.judge.At(at)
	if st != verify.StateDisabled {
		l.reopenLater(at)
		return
	}
	delete(l.letGo, at)
	l.act.Save(Saved{Place: at, Mark: v.String(), Seen: formatSeen(&s), Since: l.fabric.Now().UTC().Truncate(time.Second)})
}

// saveMode makes it survive a restart which mode is in force.
func (l *Law) saveMode() {
	f := Saved{IsMode: true}
	if l.judge != nil {
		f.Mark, f.Since = markOf(l.judge.Spec(), l.judge.Mode()), l.since.UTC().Truncate(time.Second)
	}
	if l.rows.mode != f.Mark {
		l.rows.mode = f.Mark
		l.act.Save(f)
	}
}

func formatSeen(s *verify.Seen) string {
	return fmt.Sprintf("%#x %d %d %d %#x %#x", uint64(s.GUID), s.Port, s.Type, s.NumPorts, uint64(s.PortGUID), uint64(s.SystemImage))
}

func parseSeen(text string) (s verify.Seen, err error) {
	var guid, port, image uint64
	var num, kind, ports uint8
	if _, err := fmt.Sscanf(text, "%v %d %d %d %v %v", &guid, &num, &kind, &ports, &port, &image); err != nil {
		return s, fmt.Errorf("what was seen: %.80q: want GUID, port, type, number of ports, port GUID and system image", text)
	}
	return verify.Seen{
		GUID: ib.GUID(guid), Port: ib.PortNum(num), Type: ib.NodeType(kind), NumPorts: ports,
		PortGUID: ib.GUID(port), SystemImage: ib.GUID(image),
	}, nil
}
