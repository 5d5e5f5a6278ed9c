package inputs

import (
	"cmp"
	"context"
	"time"

	"portcullis/api/audit"
	"portcullis/api/fabric/owed"
	"portcullis/api/reason"
	"portcullis/api/refusal"
	"portcullis/api/removals"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// AuditMarks puts marks into the audit log of a store. A mark that a place is unhealthy takes effect without the store,
// which is updated later; a mark that restores access does not.
func AuditMarks(st *store.Store, k *owed.Keeper) func(context.Context, string, ib.Place, *v1.HealthMark) error {
	return func(ctx context.Context, actor string, pl ib.Place, m *v1.HealthMark) error {
		ctx, cancel := context.WithTimeout(ctx, removals.Patience)
		defer cancel()
		e := audit.Entry{
			Time: time.Now(), Actor: actor, Action: "fabric.health", Object: "fabric/" + pl.String(), Code: m.Mark, Detail: m.Reason, Reason: cmp.Or(reason.Of(ctx), m.Reason),
		}
		closes := m.Mark == v1.MarkUnhealthy && actor != ""
		if closes && k.State().Notes > 0 {
			k.AddNote(e) // after those that wait already; a host with many ports waits for the store once
			return nil
		}
		_, err := st.Update(ctx, func(tx *store.Tx) error { return audit.Append(ctx, tx, e) })
		switch {
		case err == nil:
			return nil
		case closes:
			k.AddNote(e) // the log says what becomes of it
			return nil
		default:
			return &refusal.Error{
				Code: v1.CodeUnavailable, Status: refusal.Unavailable, Err: err,
				Detail: "the audit log cannot be written, so nothing was changed", Hint: "look at /readyz, then ask again",
			}
		}
	}
}
