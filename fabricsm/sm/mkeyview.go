package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/topo"
)

// MKeysView is what a View says of the M_Keys of the fabric. Neither it nor what
// it leads to holds a key.
type MKeysView struct {
	Releasing bool       // keys are given back, and none is given out
	Released  bool       // they were, as far as devices could be asked
	Places    KeyPlaces  // what counts as a verified place
	Cycle     keys.Cycle // the latest rotation; Epoch 0: there was none
	Turning   int        // devices whose key is being changed now
	Period    time.Duration
	Retired   []ib.GUID // whose keys were destroyed last since the start, since they left
}

// MKeyState is what there is to say of the M_Key of an end port.
type MKeyState struct {
	GUID     ib.GUID
	Place    ib.Place    // that it is bound to; zero: none, as switches
	Epoch    keys.Epoch  // of the key it is on; 0: taken over, or none
	Origin   keys.Origin // "": it has none
	Since    time.Time   // when that was made
	Standing KeyStanding
	Pending  bool      // it is to get another key
	Dual     bool      // it accepts two keys for a while
	Exposed  bool      // its key was shown to another device
	Lent     time.Time // until when a tool has its key; zero: none has
}

// KeyStanding is how a device stands to its key.
type KeyStanding uint8

// Standings.
const (
	KeyNone     KeyStanding = iota // it has no key of ours
	KeyHeld                        // it is on its key
	KeyChanging                    // it is asked, or gets another
	KeyWithheld                    // it is not where it was given its key
	KeyStranded                    // it answers under none of its keys
	KeyRefused                     // it does not keep the key it is given
	KeyForeign                     // another manager set its key
	KeyReturned                    // its key was removed
)

var standingNames = [...]string{"none", "held", "changing", "withheld", "stranded", "refused", "foreign", "returned"}

func (s KeyStanding) String() string { return standingNames[s] }

// MKey returns the state of the M_Key of an end port; nil for none.
func (v *View) MKey(p topo.PortID) *MKeyState {
	if int(p) >= v.mkeys.Len() {
		return nil
	}
	return v.mkeys.At(int32(p))
}

// Why says why the key of a device is old at a time, "" if it is not.
func (s *MKeyState) Why(v *MKeysView, now time.Time) keys.Why {
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

// keyStates are the states of end ports as views show them.
type keyStates struct {
	shown topo.OwnPages[*MKeyState] // by topo.PortID
	stale map[topo.PortID]struct{}  // changed since the last view
}

// showKey makes the next view show the present key state of an end port.
func (c *Core) showKey(p topo.PortID) {
	if c.mkeys.states.stale == nil {
		c.mkeys.states.stale = make(map[topo.PortID]struct{})
	}
	c.mkeys.states.stale[p] = struct{}{}
}

func (c *Core) showKeyOf(guid ib.GUID) {
	if p, ok := c.byPort[guid]; ok {
		c.showKey(p)
	}
}

// showMKeys returns the key states for a view.
func (c *Core) showMKeys() (*MKeysView, topo.Pages[*MKeyState]) {
	m := &c.mkeys
	if !c.cfg.MKey.on() {
		return nil, topo.Pages[*MKeyState]{}
	}
	for p := range m.states.stale {
		m.states.shown.Set(int32(p), c.mkeyState(p))
	}
	clear(m.states.stale)
	v := &MKeysView{
		Releasing: m.releasing, Released: m.released, Places: c.keyPlaces(),
		Turning: len(m.rotation.turning), Period: c.cfg.MKey.Rotation.Period, Retired: m.retired,
	}
	if m.rotation.rotator != nil {
		v.Cycle = m.rotation.rotator.Cycle(keys.MKey)
	}
	return v, m.states.shown.Snapshot()
}

func (c *Core) mkeyState(p topo.PortID) *MKeyState {
	guid := c.topo.GUIDOf(p)
	if guid == 0 || !c.topo.IsEndPort(p) {
		return nil
	}
	s := &MKeyState{GUID: guid, Exposed: c.mkeys.exposed[guid] != notExposed, Lent: c.mkeys.lent[guid].until, Dual: c.mkeys.rotation.dual[p] == dualYes}
	r := c.ring(p)
	if r == nil {
		return s
	}
	rec := r.Record()
	s.Place, s.Epoch, s.Origin, s.Since = rec.Place, rec.Current.Epoch, rec.Current.Origin, rec.Current.Since
	s.Pending = !rec.Pending.IsZero()
	s.Standing = c.standing(p, r, &rec)
	return s
}

func (c *Core) standing(p topo.PortID, r *keys.Ring, rec *keys.Record) KeyStanding {
	if rec.Retired {
		return KeyReturned
	}
	switch r.Next(c.keyedAt(p), c.verified(p)).Do {
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
