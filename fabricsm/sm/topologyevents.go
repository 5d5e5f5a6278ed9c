package sm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
)

// TopologyPort is a switch port at which the fabric is not as declared.
type TopologyPort struct {
	Place    ib.Place
	State    judge.State
	Verdict  judge.Verdict
	Action   judge.Action // action taken
	Would    judge.Action // action that enforcement would take
	Fields   judge.Fields // that differ
	Seen     topospec.End // zero: nothing
	Type     ib.NodeType  // that is seen
	Expected topospec.End // zero: nothing, or not known
	Belongs  topospec.End // where the seen device belongs, zero: nowhere
	Pair     ib.Place     // the other port of a swap
	Page     bool         // a person is needed at once: a protected port is violated
	Since    time.Time
	Where    string // rack, unit, device and port, in words
	Cable    string // its serial number, "" if the topology does not say
	Text     string // a sentence for people

	saved bool
}

// TopologyChanged says that a port came to differ from the declared topology, or is
// as declared again, or was released.
type TopologyChanged struct {
	TopologyPort
	From     judge.State
	Revision uint64
	By, Why  string // of a release
}

// TopologyInForce describes the topology that is in force from now on. Mode Observe, Revision 0 and no digest: nothing is
// compared any more.
type TopologyInForce struct {
	Revision           uint64
	Digest             topospec.Digest
	Mode               topospec.Mode
	By                 string
	Verified, Expected int // links
}

// TopologyRefused says that a declared topology, a mode or a release is not taken,
// or that it cannot be enforced as things stand.
type TopologyRefused struct {
	Revision uint64
	Reason   string
}

func (*TopologyChanged) FabricEvent() {}
func (*TopologyInForce) FabricEvent() {}
func (*TopologyRefused) FabricEvent() {}

func (e *TopologyChanged) String() string { return e.Text }

func (e *TopologyInForce) String() string {
	if e.Digest.IsZero() {
		return fmt.Sprintf("no declared topology is in force any more, says %s", e.By)
	}
	return fmt.Sprintf("declared topology %d (%s) is in force, mode %v, says %s: %d of %d links are verified",
		e.Revision, e.Digest.Short(), e.Mode, e.By, e.Verified, e.Expected)
}

func (e *TopologyRefused) String() string { return "declared topology: " + e.Reason }

// words names a link end by its place in the world.
func (l *law) words(e topospec.End) string {
	if e.IsZero() {
		return "nothing"
	}
	spec := l.judge.Spec()
	if spec.DeviceByGUID(e.GUID) == topospec.None {
		return fmt.Sprintf("an unknown device %v", e)
	}
	return fmt.Sprintf("%s (%v)", spec.Where(e), e)
}

// row describes a port as a transition leaves it.
func (l *law) row(ch *judge.Change) TopologyPort {
	r := &ch.Ruling
	at := topospec.EndAt(ch.At)
	row := TopologyPort{
		Place: ch.At, State: ch.To, Verdict: r.Verdict, Action: r.Action, Would: r.Would, Fields: r.Fields,
		Seen: topospec.End{GUID: ch.Seen.GUID, Port: ch.Seen.Port}, Type: ch.Seen.Type, Expected: r.Expected, Belongs: r.Belongs,
		Pair: r.Pair, Page: r.Page, Where: l.judge.Spec().Where(at),
	}
	spec := l.judge.Spec()
	if link, peer := spec.LinkAt(spec.SlotOf(at)); link != nil {
		row.Cable = link.Cable.Serial
		if row.Expected.IsZero() {
			row.Expected = peer
		}
	}
	row.Text = l.sentence(&row, ch)
	return row
}

// sentence describes the fault at a port for people.
func (l *law) sentence(t *TopologyPort, ch *judge.Change) string {
	where := fmt.Sprintf("%s (%v)", t.Where, t.Place)
	if t.Cable != "" {
		where += ", cable " + t.Cable
	}
	switch {
	case t.State == judge.StateReleased && ch.By != "":
		return fmt.Sprintf("%s: released by %s: %s", where, ch.By, ch.Why)
	case t.State == judge.StateReleased:
		return fmt.Sprintf("%s: released, the declared topology has it so now", where)
	case t.State == judge.StateVerified:
		return fmt.Sprintf("%s: %s is there as declared", where, l.words(t.Seen))
	case t.Verdict == judge.Missing:
		return fmt.Sprintf("%s: missing: there is no link to %s", where, l.words(t.Expected))
	}
	text := fmt.Sprintf("%s: %v: %s is seen, expected is %s", where, t.Verdict, l.words(t.Seen), l.words(t.Expected))
	if !t.Belongs.IsZero() {
		text = fmt.Sprintf("%s: %v: %s is seen, which belongs at %s; expected is %s", where, t.Verdict, l.words(t.Seen), l.words(t.Belongs), l.words(t.Expected))
	}
	if t.Verdict == judge.Spoof && t.Fields&judge.FieldPortGUID != 0 {
		text = fmt.Sprintf("%s: %v: %s is seen, as declared, but shows the port GUID %v of what belongs at %s", where, t.Verdict, l.words(t.Seen), ch.Seen.PortGUID, l.words(t.Belongs))
	}
	if !t.Pair.IsZero() {
		text += fmt.Sprintf("; it is exchanged with what is at %s", l.words(topospec.EndAt(t.Pair)))
	}
	return text + "; " + l.consequence(t)
}

// consequence says what follows.
func (l *law) consequence(t *TopologyPort) string {
	switch {
	case t.Page:
		return "it is not switched off, since it is the way of the subnet manager or the only one to a switch: look at once"
	case t.State == judge.StateDisabled:
		return fmt.Sprintf("the port is switched off; when it is as declared: portcullis fabric health release %v", t.Place)
	case t.State == judge.StateHeld:
		return "it is held: no key, no LID, no route, no partition"
	default:
		return fmt.Sprintf("nothing is done, the mode is %v", l.judge.Mode())
	}
}

// lawRows is where the fabric is not as declared.
type lawRows struct {
	at    map[ib.Place]TopologyPort
	stale bool
	shown *TopologyView
	mode  string // as saved
	tried int    // verified links when enforcement was last refused
	told  [judge.NumVerdicts]uint64
}

func (r *lawRows) put(row TopologyPort) { r.at[row.Place], r.stale = row, true }

// list returns the rows by place.
func (r *lawRows) list() []TopologyPort {
	out := make([]TopologyPort, 0, len(r.at))
	for _, row := range r.at {
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b TopologyPort) int {
		return cmp.Or(cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	return out
}

// wrong counts the ports that enforcement would switch off, and had not before.
func (r *lawRows) wrong() (n int) {
	for _, row := range r.at {
		if row.Would == judge.Disable && !row.saved {
			n++
		}
	}
	return n
}

// tellLaw reports a transition, keeps a fault in the views, and counts it.
func (c *Core) tellLaw(ch *judge.Change) {
	l := &c.law
	at := ch.At
	_, known := l.rows.at[at]
	l.rows.stale = true
	normal := ch.To == judge.StateVerified && ch.Ruling.Fields == 0 || ch.To == judge.StateReleased || ch.Ruling.Verdict == judge.NotDiscovered ||
		ch.To == judge.StateDark && ch.Ruling.Verdict != judge.Missing
	if normal && !known && ch.To != judge.StateReleased || ch.To == judge.StateDark && l.silent {
		if known {
			c.lawSolved(at)
			delete(l.rows.at, at)
		}
		return
	}
	row := l.row(ch)
	row.Since = c.now.UTC().Truncate(time.Millisecond)
	if normal {
		delete(l.rows.at, at)
		c.lawSolved(at)
		if !l.silent && !l.trial {
			c.event(l.changed(row, ch))
		}
		return
	}
	l.rows.put(row)
	c.tellRow(row, ch)
}

func (l *law) changed(row TopologyPort, ch *judge.Change) *TopologyChanged {
	return &TopologyChanged{TopologyPort: row, From: ch.From, Revision: l.judge.Spec().Revision().Number, By: ch.By, Why: ch.Why}
}

// tellRow reports once that a port is not as declared.
func (c *Core) tellRow(row TopologyPort, ch *judge.Change) {
	l := &c.law
	if l.silent || l.trial || row.Verdict == judge.Held {
		return
	}
	k := fault.Key{Kind: fault.TopologyBroken, Place: row.Place}
	switch {
	case row.Page:
		k.Kind = fault.TopologyProtected
	case row.Verdict == judge.Missing:
		k.Kind = fault.TopologyMissing
		if link, _ := l.judge.Spec().LinkAt(l.judge.Spec().SlotOf(topospec.EndAt(row.Place))); link != nil && link.A.GUID != row.Place.Switch && c.faults.Has(fault.Key{Kind: fault.TopologyMissing, Place: link.A.Place()}) {
			return // the same cable, from its other end
		}
	}
	if c.faults.Text(k) == row.Text {
		return
	}
	c.lawSolved(row.Place)
	l.rows.told[row.Verdict]++
	if l.judge.Mode() == topospec.Observe {
		c.event(l.changed(row, ch))
		return
	}
	c.problem(k, l.changed(row, ch))
}

// retell reports all ports that are not as declared and were not reported yet.
func (c *Core) retell() {
	for _, row := range c.law.rows.list() {
		c.tellRow(row, &judge.Change{At: row.Place, From: row.State, To: row.State})
	}
}

// lawSolved removes the reported faults of a port from the views.
func (c *Core) lawSolved(at ib.Place) {
	for _, kind := range [...]fault.Kind{fault.TopologyProtected, fault.TopologyBroken, fault.TopologyMissing} {
		c.faults.Clear(fault.Key{Kind: kind, Place: at})
	}
}

// TopologyView is the declared topology in force, and where the fabric differs.
type TopologyView struct {
	Fabric   string
	Revision uint64
	Digest   topospec.Digest
	Mode     topospec.Mode // in force
	Wanted   topospec.Mode // as requested: enforcement begins when its guards allow it
	Rooted   bool          // the subnet manager is where it is declared
	Verified int           // links
	Backbone int           // of these, links of which no tenant has an end
	Expected int           // links
	Missing  int           // expected links of which no end was seen
	Score    topospec.Permille
	Since    time.Time // when this revision, or this mode of it, was put into force

	// Verdicts and States count the ports at which the fabric is not as declared, all of
	// them.
	Verdicts [judge.NumVerdicts]int
	States   [judge.NumStates]int
	Pages    int // of these, ports that are protected: a person is needed at once
	// Ports are where the fabric is not as declared, by place, at most
	// MaxTopologyPorts; More is how many there are beyond those.
	Ports []TopologyPort
	More  int
	// Told counts the findings that were reported, by verdict, since the start.
	Told map[judge.Verdict]uint64
}

// MaxTopologyPorts bounds the ports that a view lists.
const MaxTopologyPorts = 4096

// showLaw returns what a view shows of the declared topology, nil without one.
func (c *Core) showLaw() *TopologyView {
	l := &c.law
	if !l.on() {
		return nil
	}
	j := l.judge
	if v := l.rows.shown; v != nil && !l.rows.stale && v.Verified == j.Verified() && v.Backbone == j.Backbone() && v.Mode == j.Mode() {
		return v
	}
	spec := j.Spec()
	v := &TopologyView{
		Fabric: spec.Revision().Fabric, Revision: spec.Revision().Number, Digest: spec.Digest(), Mode: j.Mode(), Wanted: l.wanted,
		Rooted: j.Rooted(), Verified: j.Verified(), Backbone: j.Backbone(), Expected: spec.NumActive(), Missing: j.NumMissing(), Score: j.Score(),
		Since: l.since, Ports: l.rows.list(), Told: make(map[judge.Verdict]uint64),
	}
	for i := range v.Ports {
		v.Verdicts[v.Ports[i].Verdict]++
		v.States[v.Ports[i].State]++
		if v.Ports[i].Page {
			v.Pages++
		}
	}
	if len(v.Ports) > MaxTopologyPorts {
		v.Ports, v.More = v.Ports[:MaxTopologyPorts:MaxTopologyPorts], len(v.Ports)-MaxTopologyPorts
	}
	for i, n := range l.rows.told {
		if n > 0 {
			v.Told[judge.Verdict(i)] = n
		}
	}
	l.rows.shown, l.rows.stale = v, false
	return v
}
