package admission

import (
	"context"
	"slices"

	"portcullis/api/inventory"
	"portcullis/api/store"
)

const (
	// fewHosts are settled without a look at all of them before.
	fewHosts = 3
	// hostsAtOnce is how many hosts are looked at together.
	hostsAtOnce = 256
	// changesAtOnce is how many changes of records are followed together. More wait for their turn.
	changesAtOnce = 4096
)

// leaveSettled returns the hosts of a list that may have to be settled, and learns the others. Many hosts are read together,
// since most changes of records ask for nothing, and each instance of the service follows all of them.
func (s *Service) leaveSettled(ctx context.Context, o *owners, ids []string) (left []string) {
	if len(ids) <= fewHosts {
		return ids
	}
	for some := range slices.Chunk(ids, hostsAtOnce) {
		all, err := s.factsOf(ctx, some)
		if err != nil {
			left = append(left, some...) // to settle each fails too, and reports why
			continue
		}
		for _, f := range all {
			if unsettled(f, decide(f)) || s.evidence.Stale(f.rec.Evidence, o.refs) {
				left = append(left, f.host.ID)
				continue
			}
			o.learn(f)
		}
	}
	return left
}

// factsOf reads the facts about those of some hosts that the inventory has, as of now.
func (s *Service) factsOf(ctx context.Context, ids []string) ([]*facts, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := inventory.Hosts().Of(ctx, snap, ids)
	if err != nil {
		return nil, err
	}
	return s.gatherSome(ctx, snap, hosts)
}

// withMore joins changes with those that have come meanwhile, as many as are followed together.
func withMore(c store.Changes, more <-chan store.Changes) store.Changes {
	c.Changes = slices.Clip(c.Changes) // so that to append copies it once: others may follow the same
	for len(c.Changes) < changesAtOnce {
		select {
		case next, ok := <-more:
			if !ok {
				return c // the next receive reports the end
			}
			c.Changes = append(c.Changes, next.Changes...)
			c.Revision, c.Err = next.Revision, next.Err
			if c.Err != nil {
				return c
			}
		default:
			return c
		}
	}
	return c
}
