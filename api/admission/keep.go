package admission

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"portcullis/api/store"
	"portcullis/attest"
)

// maxSessions bounds the open sessions of one host. Whoever knows a host's EK
// certificate can open some, from as many addresses as he has; the oldest
// gives way, because an honest agent answers within seconds.
const maxSessions = 4

// keepSession stores the challenge in the place of an older one of the same
// source.
func (s *Service) keepSession(ctx context.Context, was Record, ch *attest.Challenge, from netip.Addr, source string, locks bool) error {
	// The lease only cleans up; expiry is judged by the clock.
	lease, err := s.o.Store.NewLease(ctx, ch.Expires.Sub(s.now())+time.Minute)
	if err != nil {
		return explain(err)
	}
	id := ch.Host
	return s.update(ctx, func(tx *store.Tx) error {
		rec, err := optional(Records().Get(ctx, tx, id))
		if err != nil {
			return err
		}
		if rec.Epoch != was.Epoch || rec.Cluster != was.Cluster {
			return &attest.Refusal{Code: ReasonChanged, Detail: "the host's assignment changed meanwhile"}
		}
		open, err := optional(openSessions().Get(ctx, tx, id))
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(open.Open), func(r sessionRef) bool { return r.Source == from })
		kept = append(kept, sessionRef{Session: ch.ID, Source: from})
		kept = kept[max(0, len(kept)-maxSessions):]
		for _, r := range open.Open {
			if !slices.Contains(kept, r) {
				sessions().Delete(tx, r.Session)
			}
		}
		return errors.Join(
			sessions().PutLeased(tx, ch.ID, sessionRecord{Challenge: ch, Host: id, Epoch: rec.Epoch, Source: source, Locks: locks}, lease),
			openSessions().PutLeased(tx, id, sessionRefs{Open: kept}, lease),
		)
	})
}

// dropSessions ends the host's open sessions, if any.
func dropSessions(ctx context.Context, tx *store.Tx, host string) error {
	open, err := openSessions().Get(ctx, tx, host)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	openSessions().Delete(tx, host)
	for _, r := range open.Value.Open {
		sessions().Delete(tx, r.Session)
	}
	return nil
}
