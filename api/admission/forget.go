package admission

import (
	"context"
	"fmt"
	"strings"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// ForgetUnseen holds the nodes that are out of sight for gone: the subnet manager is partly blind because of them no
// longer. One that sees no node but its own forgets nothing.
func (s *Service) ForgetUnseen(ctx context.Context, actor string, a v1.SightAccept) (*v1.Sight, error) {
	if strings.TrimSpace(a.Reason) == "" {
		return nil, refusal.New(refusal.Invalid, "reason_missing", "say why the nodes do not come back", "no reason given")
	}
	var out v1.Sight
	err := s.update(ctx, func(tx *store.Tx) error {
		seen, err := store.Optional(records.Sights().Get(ctx, tx, records.Master))
		switch {
		case err != nil:
			return err
		case seen.State == v1.SightBlind:
			return refusal.New(refusal.Conflict, "fabric_blind", "mend that first", "the subnet manager is blind: %s", seen.Reason)
		case !seen.Frozen():
			return refusal.New(refusal.Conflict, "nothing_unseen", "", "the subnet manager sees the fabric that it knows: there is nothing to forget")
		}
		out = seen
		if err := records.AcceptedSights().Put(tx, records.Master, records.Accepted{Time: s.now(), By: actor, Reason: refusal.ClipTo(a.Reason, maxDetail)}); err != nil {
			return err
		}
		return s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "fabric.forget", Object: "fabric", Before: seen,
			Detail: fmt.Sprintf("%d nodes, %d hosts out of sight are gone: %s", seen.Nodes, seen.Hosts, refusal.ClipTo(a.Reason, maxDetail)),
		})
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}
