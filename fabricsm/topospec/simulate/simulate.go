// Package simulate reports the effects of activating a revision in advance: which ports would be switched off or held,
// which hosts and tenants that affects, and whether a guard rejects it.
package simulate

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/verify"
)

// Directory returns the owner of the device at a switch port. It may be nil.
type Directory interface {
	// Owner returns the host that is at a place where a node GUID is seen, and the tenant that uses it; "" for none. The
	// place counts first: a GUID can be false.
	Owner(at ib.Place, seen ib.GUID) (host, tenant string)
}

// Ask is the request of a simulation.
type Ask struct {
	Mode topospec.Mode // that Next is to be in force in
	Now  topospec.Mode // that Active is in force in
}

// Input is the input of a simulation.
type Input struct {
	Active *topospec.Spec // in force, nil: none
	Next   *topospec.Spec
	Fabric *topo.Fabric // as observed
	SM     topo.PortID  // the Subnet Manager's own port
	Owners Directory
	Now    time.Time // for the freeze windows; zero: they are ignored
	// Ask says which modes count; nil: those of the policies, and Next must pass all
	// guards whatever its mode.
	Ask *Ask
}

// Hit is a port that would change, and the host and tenant that it affects.
type Hit struct {
	At       ib.Place       `json:"at"`
	Where    string         `json:"where"`
	Verdict  verify.Verdict `json:"verdict"`
	Action   verify.Action  `json:"action"`
	Expected string         `json:"expected"`
	Seen     string         `json:"seen"`
	Host     string         `json:"host,omitempty"`
	Tenant   string         `json:"tenant,omitempty"`
	New      bool           `json:"new"` // verified, or admitted, by the revision in force
}

// Refusal is a guard that says no.
type Refusal struct {
	Guard Guard  `json:"guard"`
	Text  string `json:"text"`
	Do    string `json:"do"`
}

// Guard names one.
type Guard string

// Guards of an activation.
const (
	GuardScore     Guard = "score"     // too few of the links it expects are there
	GuardCoverage  Guard = "coverage"  // too many of the links that are there are not in it
	GuardFlips     Guard = "flips"     // more ports would change than one activation may
	GuardOwnPath   Guard = "own-path"  // the Subnet Manager's own place, or the last way to a switch, would be wrong
	GuardFabric    Guard = "fabric"    // it is the revision of another fabric
	GuardFreeze    Guard = "freeze"    // nothing is activated now
	GuardPromotion Guard = "promotion" // it would enforce what was not enforced: a person promotes after activation
)

// Report is the result of a simulation.
type Report struct {
	Expected int               `json:"expected_links"`
	Verified int               `json:"verified_links"`
	Backbone int               `json:"backbone_links"` // of these, links of which no tenant has an end
	Score    topospec.Permille `json:"score_permille"`
	Live     int               `json:"live_links"`   // links that are up now
	Covered  topospec.Permille `json:"coverage"`     // of these, that the next revision expects
	Flips    int               `json:"flips"`        // ports that would change from good to bad, or back
	Limit    int               `json:"flips_limit"`  //
	Missing  int               `json:"missing"`      // expected links of which no end is there
	Hits     []Hit             `json:"hits"`         // ports that would be switched off, held or kept
	Recover  int               `json:"recover"`      // ports that are wrong now and would be verified
	Changed  int               `json:"changed"`      // links that the revisions have differently
	Hosts    int               `json:"hosts_hit"`    //
	Tenants  []string          `json:"tenants_hit"`  //
	Refused  []Refusal         `json:"refused"`      // empty: it may be activated
	Cautions []Refusal         `json:"cautions"`     // guards that would refuse a mode in which something follows from differences
	Mode     topospec.Mode     `json:"mode"`         // that it would be in force in
	Would    bool              `json:"would_act_on"` // the hits are acted on: the mode is enforce
}

// Run simulates. It judges the observed fabric by both revisions as under Enforce, regardless of their modes, since a
// promotion would do so; whether the next revision acts on its hits is in Would. It costs two passes over the fabric.
func Run(in Input) *Report {
	next := sweep(in.Next, &in)
	r := &Report{
		Expected: in.Next.NumActive(), Verified: next.judge.Verified(), Backbone: next.judge.Backbone(), Score: next.judge.Score(), Missing: next.judge.NumMissing(),
		Mode: in.Next.Revision().Policy.Mode, Hits: []Hit{}, Tenants: []string{}, Refused: []Refusal{}, Cautions: []Refusal{},
	}
	if in.Ask != nil {
		r.Mode = in.Ask.Mode
	}
	r.Would = r.Mode == topospec.Enforce
	var now *swept
	if in.Active != nil {
		now = sweep(in.Active, &in)
		r.Changed = diff.Compare(in.Active, in.Next, diff.Everything).Links()
	}
	r.compare(&in, now, next)
	r.coverage(&in)
	r.Limit = in.Next.Revision().Policy.Flips(r.Expected)
	if in.Active != nil {
		// The limit in force counts: a revision cannot lift it for itself.
		r.Limit = min(r.Limit, in.Active.Revision().Policy.Flips(r.Expected))
	}
	r.guards(&in, next)
	return r
}

// swept is a fabric judged by one revision.
type swept struct {
	judge  *verify.Judge
	ruling map[ib.Place]verify.Change
	order  []ib.Place
}

// sweep judges without acting, so that everything is seen, and keeps what
// enforcement would do with each port.
func sweep(s *topospec.Spec, in *Input) *swept {
	j := verify.New(s, topospec.Observe, nil)
	verify.Sweep(j, in.Fabric, in.SM)
	out := &swept{judge: j, ruling: map[ib.Place]verify.Change{}}
	for _, c := range j.Changes() {
		if _, again := out.ruling[c.At]; !again {
			out.order = append(out.order, c.At)
		}
		out.ruling[c.At] = c
	}
	return out
}

// bad reports whether enforcement would act on a port.
func bad(c verify.Change) bool {
	return c.Ruling.Would == verify.Disable || c.Ruling.Would == verify.Hold
}

// promotes reports whether a port would be acted on which was not before.
func (in *Input) promotes() bool {
	return in.Ask != nil && in.Ask.Mode == topospec.Enforce && in.Ask.Now < topospec.Enforce
}

func (r *Report) compare(in *Input, now, next *swept) {
	guard := verify.NewGuard(in.Fabric, in.SM, func(topo.PortID) bool { return true })
	hosts, tenants := map[string]bool{}, map[string]bool{}
	for _, at := range next.order {
		c := next.ruling[at]
		was, known := verify.Change{}, false
		if now != nil {
			was, known = now.ruling[at]
		}
		// A port that is acted on for the first time is a change, too.
		wasBad := known && bad(was) && !in.promotes()
		switch {
		case bad(c) && !wasBad:
			r.Flips++
		case !bad(c) && wasBad:
			r.Flips++
			r.Recover++
		}
		if !bad(c) {
			continue
		}
		h := Hit{
			At: at, Where: words(in.Next, topospec.EndAt(at)), Verdict: c.Ruling.Verdict, Action: c.Ruling.Would,
			Expected: words(in.Next, c.Ruling.Expected), Seen: words(in.Next, topospec.End{GUID: c.Seen.GUID, Port: c.Seen.Port}), New: !wasBad,
		}
		if h.Action == verify.Disable && guard.ProtectedAt(at) {
			h.Action = verify.Keep
		}
		if in.Owners != nil {
			h.Host, h.Tenant = in.Owners.Owner(at, c.Seen.GUID)
		} else if id := in.Next.DeviceByGUID(c.Seen.GUID); id != topospec.None {
			h.Host = in.Next.Device(id).Host
		}
		if h.Host != "" && !hosts[h.Host] {
			hosts[h.Host] = true
			r.Hosts++
		}
		if h.Tenant != "" && !tenants[h.Tenant] {
			tenants[h.Tenant] = true
			r.Tenants = append(r.Tenants, h.Tenant)
		}
		r.Hits = append(r.Hits, h)
	}
}

func words(s *topospec.Spec, e topospec.End) string {
	if e.IsZero() {
		return "nothing"
	}
	if id := s.DeviceByGUID(e.GUID); id != topospec.None {
		return s.Device(id).Where(e.Port, devicemodel.Label)
	}
	return e.String()
}

// coverage counts the cables that are up now, and those of them that the next
// revision has.
func (r *Report) coverage(in *Input) {
	covered := 0
	for p := range topo.PortID(in.Fabric.NumPorts()) {
		q := in.Fabric.LinkUp(p)
		if q == topo.None || q < p {
			continue
		}
		r.Live++
		a := topospec.End{GUID: in.Fabric.NodeOf(p).GUID, Port: in.Fabric.Port(p).Num}
		b := topospec.End{GUID: in.Fabric.NodeOf(q).GUID, Port: in.Fabric.Port(q).Num}
		if in.Next.Belongs(a) == b && in.Next.Belongs(b) == a {
			covered++
		}
	}
	r.Covered = topospec.Share(covered, r.Live)
}

func (r *Report) refuse(g Guard, do, format string, args ...any) {
	r.Refused = append(r.Refused, Refusal{g, fmt.Sprintf(format, args...), do})
}

// caution rejects, unless differences have no effect in the requested mode: a fabric may be observed before all its cables
// are there.
func (r *Report) caution(in *Input, g Guard, do, format string, args ...any) {
	if in.Ask == nil || in.Ask.Mode > topospec.Observe {
		r.refuse(g, do, format, args...)
		return
	}
	r.Cautions = append(r.Cautions, Refusal{g, fmt.Sprintf(format, args...), do})
}

// promotion rejects a revision that would do more than the one in force does.
func (r *Report) promotion(in *Input) {
	next := in.Next.Revision().Policy.Mode
	var now topospec.Mode
	switch {
	case in.Ask != nil && in.Active != nil && in.Active.Digest() == in.Next.Digest():
		return // an operator promotes the revision in force
	case in.Ask != nil:
		next, now = in.Ask.Mode, in.Ask.Now
	case in.Active == nil:
		return
	default:
		now = in.Active.Revision().Policy.Mode
	}
	if next > now {
		r.refuse(GuardPromotion, "activate it in the mode in force, look at the score, then promote", "it asks for mode %v, in force is %v", next, now)
	}
}

func (r *Report) guards(in *Input, next *swept) {
	p := &in.Next.Revision().Policy
	needed := p.Score()
	if in.Active != nil {
		needed = max(needed, in.Active.Revision().Policy.Score())
		if a, b := in.Active.Revision().Fabric, in.Next.Revision().Fabric; a != b {
			r.refuse(GuardFabric, "check that the file is the one you meant", "it describes fabric %q, in force is %q", b, a)
		}
	}
	r.promotion(in)
	if r.Score < needed {
		r.caution(in, GuardScore, "compare it with the fabric: is it whole, and of this fabric?", "%d of %d expected links are verified (%v), %v are needed", r.Verified, r.Expected, r.Score, needed)
	}
	if r.Covered < needed {
		r.caution(in, GuardCoverage, "look for a file that was cut off, or a part of the fabric that is not in it", "it has %v of the %d links that are up, %v are needed", r.Covered, r.Live, needed)
	}
	if (in.Active != nil || in.promotes()) && r.Flips > r.Limit {
		r.caution(in, GuardFlips, "activate it in steps, or approve a higher limit (policy max_flips) first", "%d ports would change, %d may in one activation", r.Flips, r.Limit)
	}
	for _, h := range r.Hits {
		if h.Action == verify.Keep {
			r.caution(in, GuardOwnPath, "correct the revision or the cable: this port is the Subnet Manager's way", "%s: expected %s, there is %s", h.Where, h.Expected, h.Seen)
		}
	}
	if next.judge.Verified() == 0 {
		r.refuse(GuardOwnPath, "correct where the revision says the Subnet Manager is", "not one link is verified from where the Subnet Manager is")
	}
	freeze := p.Freeze
	if in.Active != nil {
		freeze = in.Active.Revision().Policy.Freeze
	}
	for _, w := range freeze {
		if !in.Now.IsZero() && !in.Now.Before(w.From) && in.Now.Before(w.To) {
			r.refuse(GuardFreeze, "wait until "+w.To.UTC().Format(time.RFC3339), "nothing is activated now: %s", w.Why)
		}
	}
}
