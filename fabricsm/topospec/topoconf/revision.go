package topoconf

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Revision creates a revision from a file: the first field is a switch, the two lines of a trunk become one link. A trunk
// that only one side lists, or that the sides describe differently, is rejected.
func (f File) Revision(name, fabric string) (*topospec.Revision, error) {
	m := merger{Problems: topospec.Problems{Source: name}, r: &topospec.Revision{Fabric: fabric}, at: make(map[topospec.End]int, len(f)), device: map[ib.GUID]int{}}
	for i, e := range f {
		if first, twice := m.at[e.At]; twice {
			m.Add(e.Line, object(e), fmt.Sprintf("listed in line %d, too", f[first].Line), "remove one of the two")
			continue
		}
		m.at[e.At] = i
		m.addDevice(e.At.GUID, topospec.KindSwitch, e)
	}
	for _, e := range f {
		if !e.Peer.IsZero() {
			m.addDevice(e.Peer.GUID, kindOf(e.Type), e)
		}
	}
	for i, e := range f {
		m.link(f, i, e)
	}
	if err := m.Err(); err != nil {
		return nil, err
	}
	m.r.Normalize()
	return m.r, m.r.Validate(name)
}

type merger struct {
	topospec.Problems
	r      *topospec.Revision
	at     map[topospec.End]int
	device map[ib.GUID]int
}

func object(e Entry) string { return fmt.Sprintf("switch %v port %d", e.At.GUID, e.At.Port) }

func (m *merger) addDevice(g ib.GUID, k topospec.Kind, e Entry) {
	i, ok := m.device[g]
	if !ok {
		m.device[g] = len(m.r.Devices)
		m.r.Devices = append(m.r.Devices, topospec.Device{GUID: g, Kind: k, Line: e.Line})
		return
	}
	d := &m.r.Devices[i]
	switch {
	case k == topospec.KindAny || d.Kind == k:
	case d.Kind == topospec.KindAny:
		d.Kind = k
	default:
		m.Add(e.Line, object(e), fmt.Sprintf("neighbour %v is of type %v here and %v in line %d", g, typeOf(k), typeOf(d.Kind), d.Line), "correct the type, or write Any")
	}
}

func (m *merger) link(f File, i int, e Entry) {
	state := [...]topospec.LinkState{topospec.Active, topospec.Disabled, topospec.NoDiscover}[e.State]
	l := topospec.Link{A: e.At, B: e.Peer, State: state, Line: e.Line}
	if !e.Peer.IsZero() && m.r.Devices[m.device[e.Peer.GUID]].Kind == topospec.KindSwitch {
		j, ok := m.at[e.Peer]
		switch {
		case !ok:
			m.Add(e.Line, object(e), fmt.Sprintf("the trunk to %v is not listed from its other side", e.Peer), "add the line of the other side")
			return
		case f[j].Peer != e.At:
			m.Add(e.Line, object(e), fmt.Sprintf("neighbour %v, which line %d says is cabled to %v", e.Peer, f[j].Line, peerText(f[j].Peer)), "correct one of the two")
			return
		case f[j].State != e.State:
			m.Add(e.Line, object(e), fmt.Sprintf("%v here and %v in line %d", e.State, f[j].State, f[j].Line), "write one state at both sides of a trunk")
			return
		case j < i:
			return // made by the other side
		}
		l.Class = topospec.ClassTrunk
	}
	m.r.Links = append(m.r.Links, l)
}

func peerText(e topospec.End) string {
	if e.IsZero() {
		return "nothing"
	}
	return e.String()
}

// Types says how neighbour types are written. The zero Types is TypesAny, what
// OpenSM is known to read.
type Types uint8

// Ways to write neighbour types.
const (
	TypesAny   Types = iota // "Any" everywhere
	TypesKnown              // our extension: Ca, Switch, Router, An where the kind is known
)

// FromRevision converts a revision: cables between switches from both sides, others from the switch. A state that the
// format does not have becomes the nearest that grants no more: a reserved port is Disabled, maintenance is Active with the
// device that was there. Devices without a link do not appear.
func FromRevision(r *topospec.Revision, types Types) File {
	kind := make(map[ib.GUID]topospec.Kind, len(r.Devices))
	for i := range r.Devices {
		kind[r.Devices[i].GUID] = r.Devices[i].Kind
	}
	f := make(File, 0, 2*len(r.Links))
	add := func(at, peer topospec.End, s topospec.LinkState) {
		e := Entry{At: at, Peer: peer}
		switch s {
		case topospec.Disabled, topospec.Reserved:
			e.State = Disabled
		case topospec.NoDiscover:
			e.State = NoDiscover
		default:
			e.State = Active
		}
		if types == TypesKnown && !peer.IsZero() {
			e.Type = typeOf(kind[peer.GUID])
		}
		f = append(f, e)
	}
	for i := range r.Links {
		l := &r.Links[i]
		a, b := kind[l.A.GUID] == topospec.KindSwitch, kind[l.B.GUID] == topospec.KindSwitch
		if a || !b {
			add(l.A, l.B, l.State)
		}
		if b {
			add(l.B, l.A, l.State)
		}
	}
	slices.SortStableFunc(f, func(a, b Entry) int { return cmp.Or(a.At.Compare(b.At), a.Peer.Compare(b.Peer)) })
	return f
}
