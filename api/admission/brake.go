package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// The brake stops a change that takes memberships from many hosts in a short time without an operator's order. The present
// memberships are kept until an operator lets the change go on or the causes end. Changes that operators order are not
// counted and not stopped.
//
// Causes are of classes, which are counted apart. Evidence that no longer counts concerns a host; a port that is seen
// elsewhere concerns that port. So a finding about a single port goes through while many hosts are kept because of a
// policy, and the other way round.

// Classes of automatic causes.
const (
	BrakeEvidence = "evidence" // evidence, policy, a conflict about a GUID, or a host that is not seen for too long
	BrakePlace    = "place"    // a port is seen at another place, or on another node
	BrakeAdoption = "adoption" // hosts whose memberships were adopted did not attest in time
	BrakeDrift    = "drift"    // ports of a host are not as memberships want them, and stay so
)

func brakeClasses() []string { return append(hostClasses(), BrakeAdoption, BrakeDrift) }

// hostClasses lists those by which decide takes memberships.
func hostClasses() []string { return []string{BrakeEvidence, BrakePlace} }

// BrakeLimits say how many hosts may lose memberships by automatic causes within Within: the smaller of Hosts and the
// share Share of the hosts that have memberships, and one in any case. Zero values mean the defaults.
type BrakeLimits struct {
	Hosts  int           // 1 to MaxBrakeHosts; default 16
	Share  float64       // more than 0, at most 1; default 0.1
	Within time.Duration // default 10 min
}

// MaxBrakeHosts is the largest BrakeLimits.Hosts.
const MaxBrakeHosts = 1000

// DefaultBrakeLimits returns the defaults.
func DefaultBrakeLimits() BrakeLimits {
	return BrakeLimits{Hosts: 16, Share: 0.1, Within: 10 * time.Minute}
}

func (l BrakeLimits) withDefaults() BrakeLimits {
	d := DefaultBrakeLimits()
	l.Hosts, l.Share, l.Within = cmp.Or(l.Hosts, d.Hosts), cmp.Or(l.Share, d.Share), cmp.Or(l.Within, d.Within)
	return l
}

// most returns how many of the hosts that have memberships may lose some within Within.
func (l BrakeLimits) most(members int) int {
	return max(1, min(l.Hosts, int(math.Floor(l.Share*float64(members)))))
}

// Brake is the state of one class of causes.
type Brake struct {
	// Recent are the hosts that lost memberships within the last BrakeLimits.Within.
	Recent  []BrakeRecent `json:"recent,omitempty"`
	Engaged time.Time     `json:"engaged,omitzero"` // zero: it stops nothing
	Held    int           `json:"held,omitempty"`   // hosts whose memberships it keeps
	// Generation counts how often an operator had it go on. A host that was held under an earlier one is not stopped.
	Generation int64     `json:"generation"`
	Released   time.Time `json:"released,omitzero"` // when an operator had it go on last
	By         string    `json:"by,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// BrakeRecent is a host that lost memberships.
type BrakeRecent struct {
	Host string    `json:"host"`
	Time time.Time `json:"time"`
}

// HeldHost says that a host keeps memberships that a cause would take.
type HeldHost struct {
	Class      string    `json:"class"`
	Cause      string    `json:"cause"` // in a sentence
	Since      time.Time `json:"since"`
	Generation int64     `json:"generation"` // of the Brake
}

// Brakes holds the brake by class. HeldHosts holds what it keeps, by class and host.
func Brakes() store.Collection[Brake] { return store.NewCollection[Brake]("admission/brakes", 1) }

// HeldHosts holds the hosts whose memberships a brake keeps, by "CLASS/HOST".
func HeldHosts() store.Collection[HeldHost] {
	return store.NewCollection[HeldHost]("admission/held", 1)
}

func heldKey(class, host string) string { return class + "/" + host }

// brakeQuestion is what a brake is asked before a host loses memberships.
type brakeQuestion struct {
	now     time.Time
	host    string
	held    *HeldHost // of this host, nil: none
	members int       // hosts that have memberships
	pending []string  // hosts that lose memberships together with it
	limits  BrakeLimits
}

// letsGo decides whether the host may lose memberships, and returns the brake as it is then. It is pure.
func (b Brake) letsGo(q brakeQuestion) (Brake, bool) {
	b.Recent = slices.DeleteFunc(slices.Clone(b.Recent), func(r BrakeRecent) bool { return q.now.Sub(r.Time) >= q.limits.Within })
	if q.held != nil && q.held.Generation < b.Generation {
		return b, true // an operator saw it among those held, and had it go on
	}
	if !b.Engaged.IsZero() {
		return b, false
	}
	lose := map[string]bool{q.host: true}
	for _, host := range q.pending {
		lose[host] = true
	}
	for _, r := range b.Recent {
		lose[r.Host] = true
	}
	if len(lose) > q.limits.most(q.members) {
		b.Engaged = q.now
		return b, false
	}
	b.Recent = append(slices.DeleteFunc(b.Recent, func(r BrakeRecent) bool { return r.Host == q.host }), BrakeRecent{q.host, q.now})
	return b, true
}

// brake asks the brakes about what d takes from the host by automatic causes, and has f.braking keep what they stop.
// It reports whether something is kept that was not before.
func (s *Service) brake(ctx context.Context, tx *store.Tx, f *facts, d *decision) (stopped bool, err error) {
	for _, class := range hostClasses() {
		switch cause := d.takes[class]; {
		case cause == "" && d.keeps[class] == "":
			if err := s.noLongerHeld(ctx, tx, &f.braking, f.host.ID, class); err != nil {
				return false, err
			}
		case cause != "":
			kept, err := s.askBrake(ctx, tx, f, class, cause)
			if err != nil {
				return false, err
			}
			stopped = stopped || kept
		}
	}
	return stopped, nil
}

// askBrake asks the brake of a class, and notes what it says.
func (s *Service) askBrake(ctx context.Context, tx *store.Tx, f *facts, class, cause string) (stopped bool, err error) {
	q := brakeQuestion{now: f.now, host: f.host.ID, held: f.braking.held[class], pending: pendingOf(ctx, class), limits: s.o.Brake}
	if is := f.braking.brakes[class]; is.Engaged.IsZero() {
		if q.members, err = countMembers(ctx, tx); err != nil {
			return false, err
		}
	}
	return s.ask(ctx, tx, &f.braking, q, class, cause)
}

// ask asks the brake of a class a question, and notes what it says.
func (s *Service) ask(ctx context.Context, tx *store.Tx, on *braking, q brakeQuestion, class, cause string) (stopped bool, err error) {
	was := on.brakes[class]
	next, goes := was.letsGo(q)
	if goes {
		if q.held != nil {
			HeldHosts().Delete(tx, heldKey(class, q.host))
		}
	} else {
		if q.held == nil || q.held.Generation < next.Generation {
			next.Held++
		}
		on.held[class] = &HeldHost{Class: class, Cause: refusal.ClipTo(cause, maxDetail), Since: q.now, Generation: next.Generation}
		if err := HeldHosts().Put(tx, heldKey(class, q.host), *on.held[class]); err != nil {
			return false, err
		}
		if was.Engaged.IsZero() {
			if err := s.tellBrake(ctx, tx, class, cause, &next, q); err != nil {
				return false, err
			}
		}
	}
	on.brakes[class] = next
	return !goes, Brakes().Put(tx, class, next)
}

// noLongerHeld notes that nothing would be taken from a host any more. The last one ends the brake.
func (s *Service) noLongerHeld(ctx context.Context, tx *store.Tx, on *braking, host, class string) error {
	held := on.held[class]
	if held == nil {
		return nil
	}
	HeldHosts().Delete(tx, heldKey(class, host))
	delete(on.held, class)
	b := on.brakes[class]
	if held.Generation < b.Generation {
		return nil // it was not counted any more
	}
	if b.Held--; b.Held <= 0 {
		b.Held = 0
		if !b.Engaged.IsZero() {
			since := b.Engaged
			b.Engaged, b.Recent = time.Time{}, nil
			if err := events.Record(ctx, tx, s.now(), v1.Event{
				Type: events.BrakeEnded, By: events.ByService, Cause: class, Expected: "few hosts lose memberships by themselves",
				Seen: fmt.Sprintf("no host would lose memberships any more; the brake of class %s kept them since %s", class, since.Format(time.RFC3339)),
			}); err != nil {
				return err
			}
		}
	}
	on.brakes[class] = b
	return Brakes().Put(tx, class, b)
}

func (s *Service) tellBrake(ctx context.Context, tx *store.Tx, class, cause string, b *Brake, q brakeQuestion) error {
	return events.Record(ctx, tx, s.now(), v1.Event{
		Type: events.BrakeEngaged, By: events.ByService, Cause: class,
		Expected: fmt.Sprintf("at most %d of %d hosts lose memberships by themselves within %v", q.limits.most(q.members), q.members, q.limits.Within),
		Seen:     fmt.Sprintf("%d did, and %d more would; the first that is kept is host %s: %s", len(b.Recent), max(1, len(q.pending)), q.host, cause),
		Do:       "find out why; take the change back, or have it go on: portcullis admission brake release --class " + class + " --reason TEXT",
	})
}

// countMembers counts the hosts that have memberships. It is no condition of the commit.
func countMembers(ctx context.Context, tx *store.Tx) (n int, err error) {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	list, _, err := hostrecord.Records().List(ctx, snap, "")
	for i := range list {
		if list[i].Value.Cluster != "" && list[i].Value.Granted {
			n++
		}
	}
	return n, err
}

// errForeseen ends a transaction that was to find out what it would do.
var errForeseen = errors.New("foreseen")

// foresee returns which of the hosts would lose memberships by automatic causes if they were settled now, by class. One
// that cannot be looked at is left out.
func (s *Service) foresee(ctx context.Context, refs attestation.Trust, ids []string) map[string][]string {
	out := map[string][]string{}
	if len(ids) < 2 {
		return out
	}
	for _, id := range ids {
		var takes map[string]string
		_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
			f, d, err := s.judged(ctx, tx, id, refs)
			if err == nil && f != nil {
				takes = d.takes
				err = errForeseen
			}
			return err
		})
		if !errors.Is(err, errForeseen) {
			continue // to settle it fails too, and says why
		}
		for class := range takes {
			out[class] = append(out[class], id)
		}
	}
	return out
}

type pendingKey struct{}

// withPending returns a context for settling hosts that lose memberships together.
func withPending(ctx context.Context, pending map[string][]string) context.Context {
	return context.WithValue(ctx, pendingKey{}, pending)
}

// pendingOf returns the hosts that lose memberships together by a class of causes.
func pendingOf(ctx context.Context, class string) []string {
	p, _ := ctx.Value(pendingKey{}).(map[string][]string)
	return p[class]
}

// maxHeldShown bounds how many hosts that a brake keeps are listed.
const maxHeldShown = 1000

// BrakeState returns what the brakes stop.
func (s *Service) BrakeState(ctx context.Context) (*v1.Brakes, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out := &v1.Brakes{Limits: v1.BrakeLimits{Hosts: s.o.Brake.Hosts, Share: s.o.Brake.Share, Within: s.o.Brake.Within.String()}}
	held, _, err := HeldHosts().List(ctx, snap, "")
	if err != nil {
		return nil, refusal.Explain(err)
	}
	for _, class := range brakeClasses() {
		b, err := store.Optional(Brakes().Get(ctx, snap, class))
		if err != nil {
			return nil, refusal.Explain(err)
		}
		v := v1.Brake{
			Class: class, Engaged: !b.Engaged.IsZero(), Since: b.Engaged, Recent: len(b.Recent), Held: b.Held,
			Released: b.Released, By: b.By, Reason: b.Reason, Hosts: []v1.HeldHost{},
		}
		for i := range held {
			h := &held[i].Value
			if h.Class != class || h.Generation < b.Generation {
				continue
			}
			if len(v.Hosts) == maxHeldShown {
				break
			}
			v.Hosts = append(v.Hosts, v1.HeldHost{Host: strings.TrimPrefix(held[i].Key, class+"/"), Cause: h.Cause, Since: h.Since})
		}
		out.Items = append(out.Items, v)
	}
	return out, nil
}

// ReleaseBrake has what a brake stopped go on: the hosts that it keeps now lose their memberships if the cause stands,
// and the brake counts from zero after that.
func (s *Service) ReleaseBrake(ctx context.Context, actor string, in v1.BrakeRelease) (*v1.Brakes, error) {
	if strings.TrimSpace(in.Reason) == "" {
		return nil, refusal.New(refusal.Invalid, "reason_missing", "say why memberships are to be withdrawn", "no reason given")
	}
	if !slices.Contains(brakeClasses(), in.Class) {
		return nil, refusal.New(refusal.Invalid, "class_unknown", "the classes are: "+strings.Join(brakeClasses(), ", "), "no class of causes %q", refusal.Clip(in.Class))
	}
	err := s.update(ctx, func(tx *store.Tx) error {
		b, err := store.Optional(Brakes().Get(ctx, tx, in.Class))
		if err != nil {
			return err
		}
		if b.Engaged.IsZero() {
			return refusal.New(refusal.Conflict, "brake_open", "", "the brake of class %s stops nothing", in.Class)
		}
		was := b
		b.Engaged, b.Recent, b.Held = time.Time{}, nil, 0
		b.Generation++
		b.Released, b.By, b.Reason = s.now(), actor, refusal.ClipTo(in.Reason, maxDetail)
		if err := Brakes().Put(tx, in.Class, b); err != nil {
			return err
		}
		if err := events.Record(ctx, tx, s.now(), v1.Event{
			Type: events.BrakeEnded, By: events.ByService, Cause: in.Class, Expected: "few hosts lose memberships by themselves",
			Seen: fmt.Sprintf("%s had %d hosts go on that the brake of class %s kept: %s", actor, was.Held, in.Class, b.Reason),
		}); err != nil {
			return err
		}
		return s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "brake.release", Object: "brake/" + in.Class, Before: was, After: b,
			Detail: fmt.Sprintf("%d hosts may lose their memberships: %s", was.Held, b.Reason),
		})
	})
	if err != nil {
		return nil, err
	}
	return s.BrakeState(ctx)
}
