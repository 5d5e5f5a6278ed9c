package alias

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// Inventory defines which GUIDs ports may have beside their own.
type Inventory interface {
	// Allows reports whether a port may have an alias.
	Allows(port, alias ib.GUID) bool
	// Choose returns an alias that the port may have and that is not taken, or 0 if there is none.
	Choose(port ib.GUID, taken func(ib.GUID) bool) ib.GUID
}

// Guard decides which requester may act on which port; *trust.Guard is one.
type Guard interface {
	ActsOn(a *portindex.Asker, owner *portindex.EndPort) trust.Verdict
}

// Config is the fixed configuration of a Registry.
type Config struct {
	Inventory Inventory // nil: no port may have an alias
	// Untrusted allows requests of untrusted requesters: option sa_etm_allow_untrusted_guidinfo_rec.
	Untrusted bool
	Guard     Guard         // nil: an untrusted requester acts on no other port
	Limits    *trust.Limits // has the aliases that are members of groups; nil: none are
}

// Effects are the results of a call, in this order: Save is durable before anything else is done.
type Effects struct {
	Save    []sm.Fact
	Aliases *sm.AliasesSet // for the Subnet Manager; nil: nothing
	Events  []Event
}

// Answer is the answer to a request.
type Answer struct {
	// Verdict is not trust.OK for a request that is dropped. The caller drops it and reports the reason.
	Verdict trust.Verdict
	Status  mad.Status
	Record  mad.GUIDInfoRecord // with mad.StatusOK
	Effects
}

// Why returns the reason of a refusal that is answered. If single entries were refused, it returns the reason of the first
// one.
func (a *Answer) Why() Reason {
	for i := range a.Events {
		if !a.Events[i].Gone && a.Events[i].Reason != NoReason {
			return a.Events[i].Reason
		}
	}
	return NoReason
}

// Reason is the reason of an event.
type Reason uint8

// Reasons.
const (
	NoReason          Reason = iota
	MissingComponents        // the component mask lacks some
	UnknownPort              // no port has the LID, or the requester may not know the port
	NoPlace                  // the port is not behind a switch
	NoBlock                  // the port has no room for the block
	PortGUID                 // entry 0 of block 0 is the port's own
	Member                   // the alias is a member of a multicast group
	InvalidGUID              // no GUID
	NotAllowed               // not by the inventory
	Taken                    // another has it
	NoneLeft                 // the inventory has none to choose
	UnusableFact             // a saved fact cannot be restored
)

var reasons = [...]string{
	NoReason: "none", MissingComponents: "components are missing", UnknownPort: "no port with the LID may be acted on",
	NoPlace: "the port is not behind a switch", NoBlock: "the port has no room for the block", PortGUID: "entry 0 is the port's own GUID",
	Member: "the alias is a member of a multicast group", InvalidGUID: "it is no GUID", NotAllowed: "the inventory does not let the port have it",
	Taken: "another has it", NoneLeft: "the inventory has none left for the port", UnusableFact: "it cannot be restored",
}

// String returns it in words.
func (r Reason) String() string { return registry.Word(reasons[:], "Reason", r) }

func (r Reason) status() mad.Status {
	switch r {
	case NoReason:
		return mad.StatusOK
	case MissingComponents:
		return mad.StatusInsufficientComponents
	case Member:
		return mad.StatusDenied
	default:
		return mad.StatusInvalidRequest
	}
}

// Event reports that an alias was given. With a Reason, it reports that an alias, or a whole request, was refused or taken
// back.
type Event struct {
	Asker  portindex.Asker // zero: no requester
	Port   ib.GUID
	Alias  ib.GUID // 0: the whole request
	Gone   bool    // it was given before
	Reason Reason
}

// String implements fmt.Stringer.
func (e Event) String() string {
	s := fmt.Sprintf("port %v: alias GUID %v", e.Port, e.Alias)
	if e.Alias == 0 {
		s = fmt.Sprintf("port %v: alias GUIDs", e.Port)
	}
	switch {
	case e.Gone:
		s += " taken back"
	case e.Reason == NoReason:
		s += " given"
	default:
		s += " refused"
	}
	return s + registry.Cause(&e.Asker, e.Reason)
}

// Registry is which aliases were given. It is not safe for concurrent use.
type Registry struct {
	cfg    Config
	fabric registry.Fabric              // nil before the first Follow
	given  registry.Map[ib.GUID, given] // by port GUID
	owner  map[ib.GUID]ib.GUID          // port by alias
}

// given has the aliases of a port.
type given struct {
	place   ib.Place
	aliases []ib.GUID // entries of GUIDInfo from 1 on, 0 for unused ones
}

// SetUntrusted changes Config.Untrusted.
func (r *Registry) SetUntrusted(may bool) { r.cfg.Untrusted = may }

// SetInventory changes Config.Inventory, and takes back aliases that it does not allow.
func (r *Registry) SetInventory(i Inventory) Effects {
	r.cfg.Inventory = i
	return r.Review()
}

// New creates a registry without aliases.
func New(cfg Config) *Registry {
	return &Registry{cfg: cfg, given: registry.NewMap[ib.GUID, given](cmp.Compare[ib.GUID]), owner: make(map[ib.GUID]ib.GUID)}
}

// Follow sets the current view of the fabric.
func (r *Registry) Follow(f registry.Fabric) { r.fabric = f }

// Of returns the aliases of a port: the entries of GUIDInfo from 1 on, 0 for unused ones.
func (r *Registry) Of(port ib.GUID) []ib.GUID { return slices.Clone(r.to(port).aliases) }

func (r *Registry) to(port ib.GUID) given {
	g, _ := r.given.Get(port)
	return g
}

// Set assigns to a port the aliases that a record names, one for each component of the mask. For an alias of 0 the registry
// chooses one. A refused alias is 0 in the answer, and its entry does not change.
func (r *Registry) Set(a portindex.Asker, rec *mad.GUIDInfoRecord, mask mad.ComponentMask) (ans Answer) {
	port, why := r.admit(&ans, &a, rec, mask)
	if ans.Verdict != trust.OK || why != NoReason {
		return refuse(ans.Verdict, &a, port, why)
	}
	now := r.open(port)
	var refused []int
	for _, i := range inTurn(rec, mask) {
		had, want := now.at(rec.BlockNum, i), rec.GUID[i]
		if had != 0 && (want == 0 || want == had) {
			continue // it keeps its alias
		}
		if had != 0 && r.isMember(had) {
			return refuse(trust.OK, &a, port, Member)
		}
		if want == 0 {
			want = r.choose(port, now)
		}
		why := r.may(port, want, now)
		ans.Events = append(ans.Events, Event{Asker: a, Port: port.GUID, Alias: want, Reason: why})
		if why == NoReason {
			now.put(rec.BlockNum, i, want)
		} else {
			refused = append(refused, i)
		}
	}
	r.close(&ans, port, now)
	ans.Record = now.record(port, rec)
	for _, i := range refused {
		ans.Record.GUID[i] = 0
	}
	return ans
}

// inTurn returns the entries of a request. Those with a GUID come first, so that none of these GUIDs is chosen for another
// entry.
func inTurn(rec *mad.GUIDInfoRecord, mask mad.ComponentMask) (entries []int) {
	for _, chosen := range []bool{false, true} {
		for i, g := range rec.GUID {
			if mask.Has(mad.GUIDInfoComponentGUID(i)) && (g == 0) == chosen {
				entries = append(entries, i)
			}
		}
	}
	return entries
}

// Delete takes back the aliases that the mask names.
func (r *Registry) Delete(a portindex.Asker, rec *mad.GUIDInfoRecord, mask mad.ComponentMask) (ans Answer) {
	port, why := r.admit(&ans, &a, rec, mask)
	if ans.Verdict != trust.OK || why != NoReason {
		return refuse(ans.Verdict, &a, port, why)
	}
	now := r.open(port)
	for i := range rec.GUID {
		had := now.at(rec.BlockNum, i)
		if !mask.Has(mad.GUIDInfoComponentGUID(i)) || had == 0 {
			continue
		}
		if r.isMember(had) {
			return refuse(trust.OK, &a, port, Member)
		}
		now.put(rec.BlockNum, i, 0)
		ans.Events = append(ans.Events, Event{Asker: a, Port: port.GUID, Alias: had, Gone: true})
	}
	r.close(&ans, port, now)
	ans.Record = now.record(port, rec)
	return ans
}

// admit makes the checks that both share.
func (r *Registry) admit(ans *Answer, a *portindex.Asker, rec *mad.GUIDInfoRecord, mask mad.ComponentMask) (*portindex.EndPort, Reason) {
	const mandatory = mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum
	var from *portindex.EndPort
	if r.fabric != nil {
		from = r.fabric.EndPort(a.Port)
	}
	switch {
	case from == nil:
		ans.Verdict = trust.UnknownSource
		return nil, NoReason
	case !a.Trusted && !r.cfg.Untrusted:
		ans.Verdict = trust.AliasRefused
		return nil, NoReason
	case !mask.Has(mandatory):
		return nil, MissingComponents
	}
	port := r.fabric.ByLID(rec.LID)
	// A requester that may not act on other ports does not learn which ports exist.
	switch {
	case r.cfg.Guard != nil:
		ans.Verdict = r.cfg.Guard.ActsOn(a, port)
	case !a.Trusted && port != from:
		ans.Verdict = trust.Proxy
	}
	switch {
	case ans.Verdict != trust.OK:
		return port, NoReason
	case port == nil, !a.Trusted && !portindex.Sees(from, port, false):
		return nil, UnknownPort
	case r.fabric.PlaceOf(port) == ib.Place{}:
		return port, NoPlace
	case int(rec.BlockNum)*mad.GUIDsPerBlock >= r.fabric.GUIDCap(port):
		return port, NoBlock
	case rec.BlockNum == 0 && mask.Has(mad.GUIDInfoComponentGUID(0)):
		return port, PortGUID
	}
	for i := range mad.GUIDsPerBlock {
		if mask.Has(mad.GUIDInfoComponentGUID(i)) && int(rec.BlockNum)*mad.GUIDsPerBlock+i >= r.fabric.GUIDCap(port) {
			return port, NoBlock
		}
	}
	return port, NoReason
}

// may returns the reason why a port cannot have an alias. now has its other aliases.
func (r *Registry) may(port *portindex.EndPort, alias ib.GUID, now given) Reason {
	switch {
	case alias == 0:
		return NoneLeft
	case !alias.Valid():
		return InvalidGUID
	case r.cfg.Inventory == nil || !r.cfg.Inventory.Allows(port.GUID, alias):
		return NotAllowed
	case r.taken(port, alias, now):
		return Taken
	default:
		return NoReason
	}
}

// taken reports whether a GUID is in use or promised to a port.
func (r *Registry) taken(port *portindex.EndPort, alias ib.GUID, now given) bool {
	if owner, ok := r.owner[alias]; ok && owner != port.GUID || slices.Contains(now.aliases, alias) {
		return true
	}
	at := r.fabric.ByGUID(alias)
	return at != nil && (at.Port != port.Port || at.GUID == alias)
}

func (r *Registry) choose(port *portindex.EndPort, now given) ib.GUID {
	if r.cfg.Inventory == nil {
		return 0
	}
	return r.cfg.Inventory.Choose(port.GUID, func(g ib.GUID) bool { return r.taken(port, g, now) })
}

func (r *Registry) isMember(alias ib.GUID) bool {
	return r.cfg.Limits != nil && r.cfg.Limits.Count(trust.Groups, alias) > 0
}

// open returns a copy of the aliases of a port, for changes.
func (r *Registry) open(port *portindex.EndPort) given {
	return given{r.fabric.PlaceOf(port), slices.Clone(r.to(port.GUID).aliases)}
}

// close stores the new aliases of a port.
func (r *Registry) close(ans *Answer, port *portindex.EndPort, now given) {
	for len(now.aliases) > 0 && now.aliases[len(now.aliases)-1] == 0 {
		now.aliases = now.aliases[:len(now.aliases)-1]
	}
	if was := r.to(port.GUID); slices.Equal(was.aliases, now.aliases) && (was.place == now.place || len(now.aliases) == 0) {
		return
	}
	r.keep(&ans.Effects, port.GUID, now)
}

func (r *Registry) keep(e *Effects, port ib.GUID, now given) {
	for _, g := range r.to(port).aliases {
		delete(r.owner, g)
	}
	for _, g := range now.aliases {
		if g != 0 {
			r.owner[g] = port
		}
	}
	if r.given = r.given.With(port, now); len(now.aliases) == 0 {
		r.given = r.given.Without(port)
	}
	e.Save = append(e.Save, factOf(port, now))
	if e.Aliases == nil {
		e.Aliases = &sm.AliasesSet{}
	}
	e.Aliases.Ports = append(e.Aliases.Ports, wishOf(port, now))
}

func wishOf(port ib.GUID, g given) sm.AliasGUIDs {
	return sm.AliasGUIDs{GUID: port, Place: g.place, Aliases: slices.Clone(g.aliases)}
}

// Input is all that was given, for the Subnet Manager, after a start.
func (r *Registry) Input() *sm.AliasesSet {
	in := &sm.AliasesSet{}
	for port, g := range r.given.All {
		in.Ports = append(in.Ports, wishOf(port, g))
	}
	return in
}

// Review takes back aliases that the inventory no longer allows.
func (r *Registry) Review() (e Effects) {
	for port, was := range r.given.All {
		now := given{was.place, slices.Clone(was.aliases)}
		changed := false
		for i, g := range now.aliases {
			if g != 0 && (r.cfg.Inventory == nil || !r.cfg.Inventory.Allows(port, g)) {
				now.aliases[i], changed = 0, true
				e.Events = append(e.Events, Event{Port: port, Alias: g, Gone: true, Reason: NotAllowed})
			}
		}
		for len(now.aliases) > 0 && now.aliases[len(now.aliases)-1] == 0 {
			now.aliases = now.aliases[:len(now.aliases)-1]
		}
		if changed {
			r.keep(&e, port, now)
		}
	}
	return e
}

// at returns an entry of a block. Entry 0 of block 0 is the port's own GUID and is not stored here.
func (g *given) at(block uint8, i int) ib.GUID {
	if n := int(block)*mad.GUIDsPerBlock + i - 1; n >= 0 && n < len(g.aliases) {
		return g.aliases[n]
	}
	return 0
}

func (g *given) put(block uint8, i int, alias ib.GUID) {
	n := int(block)*mad.GUIDsPerBlock + i - 1
	if n < 0 {
		return
	}
	for len(g.aliases) <= n {
		g.aliases = append(g.aliases, 0)
	}
	g.aliases[n] = alias
}

// record returns the block as it will be.
func (g *given) record(port *portindex.EndPort, asked *mad.GUIDInfoRecord) mad.GUIDInfoRecord {
	rec := mad.GUIDInfoRecord{LID: asked.LID, BlockNum: asked.BlockNum}
	for i := range rec.GUID {
		rec.GUID[i] = g.at(asked.BlockNum, i)
	}
	if asked.BlockNum == 0 {
		rec.GUID[0] = port.GUID
	}
	return rec
}

// refuse answers no, or nothing.
func refuse(v trust.Verdict, a *portindex.Asker, port *portindex.EndPort, why Reason) Answer {
	if v != trust.OK {
		return Answer{Verdict: v}
	}
	e := Event{Asker: *a, Reason: why}
	if port != nil {
		e.Port = port.GUID
	}
	return Answer{Status: why.status(), Effects: Effects{Events: []Event{e}}}
}
