package mkeys

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/mkeys/exposed"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topo"
)

// View describes the M_Keys of the fabric. Neither it nor what it leads to holds a key.
type View struct {
	Releasing bool            // keys are given back, and none is given out
	Released  bool            // they were, as far as devices could be asked
	Places    keyplace.Policy // what counts as a verified place
	Cycle     keys.Cycle      // the latest rotation; Epoch 0: there was none
	Turning   int             // devices whose key is being changed now
	Period    time.Duration
	Retired   []ib.GUID // whose keys were destroyed last since the start, since they left
}

// State is what there is to say of the M_Key of an end port.
type State struct {
	GUID     ib.GUID
	Place    ib.Place    // that it is bound to; zero: none, as switches
	Epoch    keys.Epoch  // of the key it is on; 0: taken over, or none
	Origin   keys.Origin // "": it has none
	Since    time.Time   // when that was made
	Standing Standing
	Pending  bool      // it is to get another key
	Dual     bool      // it accepts two keys for a while
	Exposed  bool      // its key was shown to another device
	Lent     time.Time // until when a tool has its key; zero: none has
}

// Standing is how a device stands to its key.
type Standing uint8

// Standings.
const (
	KeyNone     Standing = iota // it has no key of ours
	KeyHeld                     // it is on its key
	KeyChanging                 // it is asked, or gets another
	KeyWithheld                 // it is not where it was given its key
	KeyStranded                 // it answers under none of its keys
	KeyRefused                  // it does not keep the key it is given
	KeyForeign                  // another manager set its key
	KeyReturned                 // its key was removed
)

var standingNames = [...]string{"none", "held", "changing", "withheld", "stranded", "refused", "foreign", "returned"}

// String returns the name of a standing: "held".
func (s Standing) String() string { return standingNames[s] }

// Why says why the key of a device is old at a time, "" if it is not.
func (s *State) Why(v *View, now time.Time) keys.Why {
	switch {
	case s.Origin == "":
		return ""
	case s.Pending:
		return keys.WhyUnknown
	case s.Origin == keys.OriginImported:
		return keys.WhyImported
	case v.Period == 0 || now.Sub(s.Since) <= v.Period:
		return ""
	case !s.Dual:
		return keys.WhySingle
	case now.Sub(s.Since) > 2*v.Period:
		return keys.WhyOverdue
	default:
		return ""
	}
}

// states are the states of end ports as views show them.
type states struct {
	shown topo.OwnPages[*State]    // by topo.PortID
	stale map[topo.PortID]struct{} // changed since the last view
}

// showKey makes the next view show the present key state of an end port.
func (m *Keeper) showKey(p topo.PortID) {
	if m.states.stale == nil {
		m.states.stale = make(map[topo.PortID]struct{})
	}
	m.states.stale[p] = struct{}{}
}

func (m *Keeper) showKeyOf(guid ib.GUID) {
	if p, ok := m.core.PortByGUID(guid); ok {
		m.showKey(p)
	}
}

// Show returns the key states for a view.
func (m *Keeper) Show() (*View, topo.Pages[*State]) {
	if !m.IsOn() {
		return nil, topo.Pages[*State]{}
	}
	for p := range m.states.stale {
		m.states.shown.Set(int32(p), m.stateOf(p))
	}
	clear(m.states.stale)
	v := &View{
		Releasing: m.releasing, Released: m.released, Places: m.places.Policy(),
		Turning: m.rotation.Turning(), Period: m.cfg.Rotation.Period, Retired: m.retired, Cycle: m.rotation.Cycle(),
	}
	return v, m.states.shown.Snapshot()
}

func (m *Keeper) stateOf(p topo.PortID) *State {
	guid := m.topo.GUIDOf(p)
	if guid == 0 || !m.topo.IsEndPort(p) {
		return nil
	}
	s := &State{GUID: guid, Exposed: m.exposed.Of(guid) != exposed.None, Lent: m.leases.Until(guid), Dual: m.rotation.IsDual(p)}
	r := m.places.Ring(p)
	if r == nil {
		return s
	}
	rec := r.Record()
	s.Place, s.Epoch, s.Origin, s.Since = rec.Place, rec.Current.Epoch, rec.Current.Origin, rec.Current.Since
	s.Pending = !rec.Pending.IsZero()
	s.Standing = m.standing(p, r, &rec)
	return s
}

func (m *Keeper) standing(p topo.PortID, r *keys.Ring, rec *keys.Record) Standing {
	if rec.Retired {
		return KeyReturned
	}
	switch m.places.Next(p, r).Do {
	case keys.Withhold:
		return KeyWithheld
	case keys.Stranded:
		return KeyStranded
	case keys.Refusing:
		return KeyRefused
	case keys.Foreign:
		return KeyForeign
	case keys.Ask, keys.Program:
		return KeyChanging
	default:
		if len(rec.Try()) == 0 {
			return KeyNone
		}
		return KeyHeld
	}
}
