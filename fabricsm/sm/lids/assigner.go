package lids

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/topo"
)

// Port is what has to be known of an end port.
type Port struct {
	Num      ib.PortNum
	LID      ib.LID // assigned, 0: none
	Shown    ib.LID // that PortInfo shows
	Known    bool   // PortInfo was read
	Seen     bool   // PortInfo was read, or the port may be written without
	Enhanced bool   // an enhanced port 0
}

// Fabric is what an Assigner asks of the core.
type Fabric interface {
	// Now returns the time of the step.
	Now() time.Time
	// IsWriting reports whether devices may be changed.
	IsWriting() bool
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	PortOf(topo.PortID) Port
	// Forwards reports whether a switch is known to forward a LID by a port.
	Forwards(topo.PortID, ib.LID) bool
	// MayYetForward reports whether the switch of a port has still to say where it forwards a LID.
	MayYetForward(topo.PortID, ib.LID) bool
	// Assigned takes the LID of a port.
	Assigned(topo.PortID, ib.LID)
	// Place reports where a port with a GUID is, once it has its LID.
	Place(topo.PortID, ib.GUID)
	// Save makes durable that a GUID owns LIDs. LID 0 takes it back.
	Save(ib.GUID, ib.LID, ib.LMC)
	// Refuse reports that a port does not get the LID it shows, or was to have. Owner 0: it cannot be had.
	Refuse(guid ib.GUID, l ib.LID, owner ib.GUID)
}

// Options say how many LIDs ports are to have.
type Options struct {
	LMC   ib.LMC
	Port0 bool // enhanced ports 0 of switches are to have as many
}

// Assigner assigns LIDs. Use New.
type Assigner struct {
	Space
	fabric  Fabric
	topo    *topo.Builder
	members *members.Register
	options Options

	open   []topo.PortID          // see isUndecided, perhaps some of them twice
	spoken bool                   // a switch has said what it forwards, or that it will not
	guests map[ib.Place][]ib.GUID // that got new LIDs at a place, the latest maxGuests
	short  bool                   // an end port got no LID, because every one was kept
}

// maxGuests is how many GUIDs without a grant keep LIDs that they got at one
// place: a host may come back under ever new GUIDs.
const maxGuests = 16

// lidRest is how long the LIDs of an end port stay its own after it was seen last, although no other LID is left.
const lidRest = 24 * time.Hour

// New returns an assigner of LIDs that no GUID owns.
func New(f Fabric, t *topo.Builder, m *members.Register, o Options) *Assigner {
	return &Assigner{Space: newSpace(), fabric: f, topo: t, members: m, options: o, guests: make(map[ib.Place][]ib.GUID)}
}

// LMC returns the LMC that an end port is to have: switches need one LID, unless they have an enhanced port 0 and are to
// have more.
func (a *Assigner) LMC(p topo.PortID) ib.LMC {
	pt := a.fabric.PortOf(p)
	return a.lmcOf(p, &pt)
}

func (a *Assigner) lmcOf(p topo.PortID, pt *Port) ib.LMC {
	switch {
	case pt.Num != 0:
		return a.options.LMC
	case !a.options.Port0 || a.options.LMC == 0:
		return 0
	case pt.LID != 0:
		return a.lmc[a.topo.GUIDOf(p)] // what it got before its SwitchInfo was known stays
	case pt.Enhanced:
		return a.options.LMC
	default:
		return 0
	}
}

// Settle assigns an end port its LID, once this SM is master, and has its place reported.
func (a *Assigner) Settle(p topo.PortID) {
	guid := a.topo.GUIDOf(p)
	if guid == 0 || !a.shows(p, guid) {
		return
	}
	pt := a.fabric.PortOf(p)
	if pt.LID == 0 && a.fabric.IsWriting() && pt.Seen {
		a.assign(p, guid, &pt)
	}
	a.fabric.Place(p, guid)
}

func (a *Assigner) assign(p topo.PortID, guid ib.GUID, pt *Port) {
	lmc := a.lmcOf(p, pt)
	if a.isUndecided(p, guid, pt, lmc) {
		a.open = append(a.open, p)
		return
	}
	a.greet(guid, a.topo.PlaceOf(p))
	l, fresh, taken := a.pick(guid, a.found(p, pt), lmc, a.keeps)
	for _, g := range taken {
		a.fabric.Save(g, 0, 0)
	}
	if l == 0 {
		a.short = true
		return
	}
	if fresh {
		a.setNew(l)
		a.fabric.Save(guid, l, lmc)
		if owner := a.At(pt.Shown); pt.Shown.IsUnicast() && pt.Shown != l && owner != 0 && owner != guid {
			a.fabric.Refuse(guid, pt.Shown, owner)
		}
	}
	a.fabric.Assigned(p, l)
}

// isUndecided reports whether a port shows a LID which it may keep if its switch forwards it there, and the switch has not
// reported yet whether it does.
func (a *Assigner) isUndecided(p topo.PortID, guid ib.GUID, pt *Port, lmc ib.LMC) bool {
	if _, had := a.byGUID[guid]; had {
		return false
	}
	sp := a.before(p, pt)
	return sp != topo.None && a.isFree(pt.Shown, lmc, guid) && a.fabric.MayYetForward(sp, pt.Shown)
}

// Spoke takes that a switch has said what it forwards, or that it will not.
func (a *Assigner) Spoke() { a.spoken = true }

// SettleOpen assigns LIDs to the waiting ports whose switches have answered, or will not.
func (a *Assigner) SettleOpen() {
	if !a.spoken {
		return
	}
	open := a.open
	a.open, a.spoken = nil, false
	for _, p := range open {
		a.Settle(p) // which notes again what is open still
	}
}

// SettleAll assigns LIDs to end ports all at once: those that are owned, then those found on ports, then new ones.
func (a *Assigner) SettleAll(ports []topo.PortID) {
	for turn := range 3 {
		for _, p := range ports {
			if g := a.topo.GUIDOf(p); a.shows(p, g) {
				if pt := a.fabric.PortOf(p); pt.Seen && pt.LID == 0 && a.rank(p, g, &pt) <= turn {
					a.assign(p, g, &pt)
				}
			}
		}
	}
	for _, p := range ports {
		if g := a.topo.GUIDOf(p); a.shows(p, g) {
			a.fabric.Place(p, g)
		}
	}
}

// rank returns the turn at which an end port gets its LID.
func (a *Assigner) rank(p topo.PortID, guid ib.GUID, pt *Port) int {
	if a.Of(guid) != 0 {
		return 0
	}
	if found := a.found(p, pt); found.IsUnicast() && a.At(found) == 0 {
		return 1
	}
	return 2
}

// shows reports whether an end port is the one that counts for a GUID.
func (a *Assigner) shows(p topo.PortID, guid ib.GUID) bool {
	at, ok := a.fabric.PortByGUID(guid)
	return ok && at == p
}

// greet notes a GUID that gets a LID at a place for the first time. The LIDs of one that was there long before, is away and
// has no grant become free.
func (a *Assigner) greet(guid ib.GUID, pl ib.Place) {
	if _, had := a.byGUID[guid]; had || pl.IsZero() {
		return
	}
	list := append(a.guests[pl], guid)
	if len(list) > maxGuests {
		old := list[0]
		list = slices.Delete(list, 0, 1)
		if _, here := a.fabric.PortByGUID(old); !here && !a.members.Has(old) && a.Of(old) != 0 {
			a.release(old)
			a.fabric.Save(old, 0, 0)
		}
	}
	a.guests[pl] = list
}

// found returns the LID that a port is found with, 0 if its switch does not forward it there. Otherwise a host that shows
// an arbitrary LID would make all switches hold tables up to the highest.
func (a *Assigner) found(p topo.PortID, pt *Port) ib.LID {
	if sp := a.before(p, pt); sp != topo.None && !a.fabric.Forwards(sp, pt.Shown) {
		return 0
	}
	return pt.Shown
}

// before returns the port of a switch by which packets reach an end port, None if there is no switch before it.
func (a *Assigner) before(p topo.PortID, pt *Port) topo.PortID {
	if pt.Num == 0 {
		return p
	}
	if sp := a.topo.Peer(p); sp != topo.None && a.topo.IsExternal(sp) {
		return sp
	}
	return topo.None
}

// keeps reports whether the LIDs of an end port are its own whatever else is needed: it is seen, was seen within lidRest, or
// has a membership. Before the first intent every end port may have one.
func (a *Assigner) keeps(g ib.GUID) bool {
	if _, here := a.fabric.PortByGUID(g); here || !a.members.IsReady() || a.members.Has(g) {
		return true
	}
	left, known := a.away[g]
	return known && a.fabric.Now().Sub(left) < lidRest
}

// Gone takes that an end port is no longer seen.
func (a *Assigner) Gone(g ib.GUID) {
	if a.Of(g) != 0 {
		a.away[g] = a.fabric.Now()
	}
}

// Back takes that an end port is seen.
func (a *Assigner) Back(g ib.GUID) { delete(a.away, g) }

// TakeShort reports whether end ports got no LID because every one was kept. It reports that once.
func (a *Assigner) TakeShort() bool {
	short := a.short
	a.short = false
	return short
}

// Prefer takes LIDs that a GUID is to have. They are preferred once, and then kept: a GUID that owns others keeps those.
func (a *Assigner) Prefer(guid ib.GUID, l ib.LID, lmc ib.LMC) {
	if a.Of(guid) != 0 {
		return
	}
	if !guid.Valid() || !isRange(l, lmc) {
		a.fabric.Refuse(guid, l, 0)
		return
	}
	if owner := a.ownerIn(l, lmc); owner != 0 {
		a.fabric.Refuse(guid, l, owner)
		return
	}
	a.Load(guid, l, lmc)
	a.fabric.Save(guid, l, lmc)
}

// Adopt takes the LIDs that ports have for theirs, where another SM ruled: its LIDs are in use. Where two ports show one
// LID, it stays with the one that was known to have it.
func (a *Assigner) Adopt(ports []topo.PortID) {
	shown := make(map[ib.LID]int)
	for _, p := range ports {
		if pt := a.fabric.PortOf(p); pt.Known && a.shows(p, a.topo.GUIDOf(p)) {
			shown[a.found(p, &pt)]++
		}
	}
	for _, p := range ports {
		pt, guid := a.fabric.PortOf(p), a.topo.GUIDOf(p)
		if !pt.Known || !a.shows(p, guid) {
			continue
		}
		l := a.found(p, &pt)
		owner := a.At(l)
		if !l.IsUnicast() || owner == guid || shown[l] > 1 {
			continue
		}
		if owner != 0 {
			a.fabric.Save(owner, 0, 0)
		}
		a.Load(guid, l, 0)
		a.setNew(l)
		a.fabric.Save(guid, l, 0)
	}
}
