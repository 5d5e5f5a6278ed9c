package posture

import (
	"context"
	"time"

	"portcullis/api/audit/anchor"
	"portcullis/api/isolation/standing"
	"portcullis/api/profile"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
)

// Options are what a Collector is made of. Store, Now and Anchors are required.
type Options struct {
	Store   *store.Store
	Now     func() time.Time
	Anchors func() []anchor.State
	Every   time.Duration // between two looks of the anchors at the audit log

	// Manager is nil where no Subnet Manager runs in this process.
	Manager *Manager
}

// Manager is what the role sm shows.
type Manager struct {
	Core func() sm.Config // in use
	View func() (*sm.View, error)
	// Administration returns the configuration that hosts are answered by. It reports false if none are answered.
	Administration func() (sa.Config, bool)
	// SAKey reports whether an SA_Key is in force.
	SAKey func() (bool, error)
	// Standing returns how the isolation of all tenants stands. It reports false while this instance does not know.
	Standing func() (standing.Standing, bool)
}

// Collector implements api.SecurityProfiler.
type Collector struct{ o Options }

// New returns a Collector.
func New(o Options) *Collector { return &Collector{o} }

// Facts returns what is known now.
func (c *Collector) Facts(ctx context.Context) (*profile.Facts, error) {
	f := &profile.Facts{At: c.o.Now().UTC()}
	snap, err := c.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if err := hosts(ctx, snap, f); err != nil {
		return nil, err
	}
	if err := c.anchors(ctx, snap, f); err != nil {
		return nil, err
	}
	if err := rehearsed(ctx, snap, f); err != nil {
		return nil, err
	}
	if c.o.Manager == nil {
		elsewhere(f)
		return f, nil
	}
	c.o.Manager.facts(f)
	return f, nil
}

// Profile implements api.SecurityProfiler.
func (c *Collector) Profile(ctx context.Context, p profile.Profile) (*v1.SecurityProfile, error) {
	f, err := c.Facts(ctx)
	if err != nil {
		return nil, &refusal.Error{
			Code: v1.CodeUnavailable, Status: refusal.Unavailable, Err: err, Detail: "nothing was compared: the records of the service were not read",
			Hint: "GET /readyz says whether the store serves; ask again when it does",
		}
	}
	r := profile.Check(p, f)
	out := &v1.SecurityProfile{
		Name: p.String(), Holds: r.Holds(), Score: r.Score(), Collected: f.At, Rules: make([]v1.ProfileFinding, 0, len(r.Findings)),
		Count: v1.ProfileCount{Holds: r.Count(profile.Holds), Fails: r.Count(profile.Fails), Unknown: r.Count(profile.Unknown)},
	}
	for i := range r.Findings {
		one := &r.Findings[i]
		row := v1.ProfileFinding{
			Rule: one.Rule.Name, First: one.Rule.First.String(), State: one.State.String(), Detail: one.Detail, Source: one.Source,
			Why: one.Rule.Why, Cure: one.Rule.Cure,
		}
		if !one.At.IsZero() {
			at := one.At.UTC()
			row.At = &at
		}
		out.Rules = append(out.Rules, row)
	}
	return out, nil
}

// now returns a value that was looked at when the facts were collected.
func now[T any](f *profile.Facts, v T, source string) profile.Seen[T] {
	return profile.Seen[T]{Value: v, Source: source, At: f.At}
}

// elsewhere has the facts of a Subnet Manager unknown.
func elsewhere(f *profile.Facts) {
	const why = "this process has no Subnet Manager: ask an instance that has the role sm"
	f.Isolation.Missing = why
	unknownSettings(f, why)
	unseen(f, why)
	unanswered(f, why)
}
