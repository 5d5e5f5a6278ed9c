package admission

import (
	"context"
	"errors"

	"portcullis/api/fabric/records"
	"portcullis/api/store"
)

// braking is what is known of the brakes when a host is decided about.
type braking struct {
	frozen bool                 // the subnet manager does not see the fabric that it knows
	brakes map[string]Brake     // by class
	held   map[string]*HeldHost // by class
}

// keeps reports whether a class of causes takes nothing from the host now.
func (b *braking) keeps(class string) bool {
	h := b.held[class]
	switch {
	case b.frozen && class == BrakeEvidence:
		return true
	case h == nil || h.Generation < b.brakes[class].Generation:
		return false
	default:
		return !b.brakes[class].Engaged.IsZero()
	}
}

// why says in a sentence why a class of causes takes nothing.
func (b *braking) why(class string) string {
	if b.frozen && class == BrakeEvidence {
		return "the subnet manager does not see the fabric that it knows, see: portcullis sm status"
	}
	return "many hosts would lose theirs, see: portcullis admission brake show"
}

// Losing is a host that would lose memberships by an automatic cause.
type Losing struct {
	Class, Cause string
	// Host is a name of the inventory, or the port GUID where it has none.
	Host     string
	Together []string // hosts that are to lose theirs together with it
	Members  int      // hosts that have memberships which the class can take; 0: all that have memberships count
}

// MayLose asks a brake whether a host may lose memberships by a cause that is found outside of this package: of BrakeAdoption or
// BrakeDrift.
func (s *Service) MayLose(ctx context.Context, tx *store.Tx, l Losing) (bool, error) {
	on, err := brakingOf(ctx, tx, l.Class, l.Host)
	if err != nil || on.frozen || on.keeps(l.Class) {
		return false, err
	}
	q := brakeQuestion{now: s.now(), host: l.Host, held: on.held[l.Class], pending: l.Together, members: l.Members, limits: s.o.Brake}
	if q.members == 0 {
		if q.members, err = countMembers(ctx, tx); err != nil {
			return false, err
		}
	}
	stopped, err := s.ask(ctx, tx, &on, q, l.Class, l.Cause)
	return !stopped, err
}

// LosesNothing notes that a host would lose nothing any more by the causes of a class, so that its brake has nothing to keep.
func (s *Service) LosesNothing(ctx context.Context, tx *store.Tx, class, host string) error {
	on, err := brakingOf(ctx, tx, class, host)
	if err != nil {
		return err
	}
	return s.noLongerHeld(ctx, tx, &on, host, class)
}

// brakingOf reads the brake of one class.
func brakingOf(ctx context.Context, tx *store.Tx, class, host string) (braking, error) {
	out := braking{brakes: map[string]Brake{}, held: map[string]*HeldHost{}}
	seen, err := store.Optional(records.Sights().Get(ctx, tx, records.Master))
	if err != nil {
		return out, err
	}
	out.frozen = seen.Frozen()
	if out.brakes[class], err = store.Optional(Brakes().Get(ctx, tx, class)); err != nil {
		return out, err
	}
	held, err := store.Optional(HeldHosts().Get(ctx, tx, heldKey(class, host)))
	if err == nil && held.Class != "" {
		out.held[class] = &held
	}
	return out, err
}

// gatherBraking reads what decides about a host beside its own facts.
func gatherBraking(ctx context.Context, r store.Reader, host string) (braking, error) {
	out := braking{brakes: map[string]Brake{}, held: map[string]*HeldHost{}}
	seen, err := store.Optional(records.Sights().Get(ctx, r, records.Master))
	if err != nil {
		return out, err
	}
	out.frozen = seen.Frozen()
	for _, class := range hostClasses() {
		if out.brakes[class], err = store.Optional(Brakes().Get(ctx, r, class)); err != nil {
			return out, err
		}
		held, err := HeldHosts().Get(ctx, r, heldKey(class, host))
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return out, err
		default:
			out.held[class] = &held.Value
		}
	}
	return out, nil
}

// gatherAllBraking reads the same for all hosts.
func gatherAllBraking(ctx context.Context, r store.Reader) (func(host string) braking, error) {
	held, err := index(HeldHosts().List(ctx, r, ""))
	if err != nil {
		return nil, err
	}
	return gatherHeld(ctx, r, held)
}

// gatherSomeBraking reads the same for some hosts.
func gatherSomeBraking(ctx context.Context, n store.Snapshot, hosts []string) (func(host string) braking, error) {
	keys := make([]string, 0, len(hosts)*len(hostClasses()))
	for _, class := range hostClasses() {
		for _, host := range hosts {
			keys = append(keys, heldKey(class, host))
		}
	}
	held, err := byKey(HeldHosts().Of(ctx, n, keys))
	if err != nil {
		return nil, err
	}
	return gatherHeld(ctx, n, held)
}

func gatherHeld(ctx context.Context, r store.Reader, held map[string]store.Record[HeldHost]) (func(host string) braking, error) {
	seen, err := store.Optional(records.Sights().Get(ctx, r, records.Master))
	if err != nil {
		return nil, err
	}
	list, _, err := Brakes().List(ctx, r, "")
	if err != nil {
		return nil, err
	}
	brakes := map[string]Brake{}
	for _, b := range list {
		brakes[b.Key] = b.Value
	}
	return func(host string) braking {
		out := braking{frozen: seen.Frozen(), brakes: brakes, held: map[string]*HeldHost{}}
		for _, class := range hostClasses() {
			if h, ok := held[heldKey(class, host)]; ok {
				out.held[class] = &h.Value
			}
		}
		return out
	}, nil
}
