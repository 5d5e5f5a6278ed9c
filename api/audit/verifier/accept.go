package verifier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Breaks returns where the log is not what was written, by the last verification that came to its end.
func (v *Verifier) Breaks(context.Context) (*v1.AuditBreaks, error) {
	now := v.State()
	out := &v1.AuditBreaks{Verified: now.Good, Open: []v1.AuditBreak{}, Accepted: []v1.AuditBreak{}}
	for i := range now.Open {
		b := &now.Open[i]
		out.Open = append(out.Open, v1.AuditBreak{Cause: b.Cause, Seq: b.Seq, Found: b.Text, From: v1.AuditHead(b.From), To: v1.AuditHead(b.To)})
	}
	for i := range now.Taken {
		a := &now.Taken[i]
		seq := a.From.Seq + 1
		if a.Cause == chain.RolledBack {
			seq = a.From.Seq
		}
		out.Accepted = append(out.Accepted, v1.AuditBreak{
			Cause: a.Cause, Seq: seq, From: v1.AuditHead(a.From), To: v1.AuditHead(a.To), Entry: a.Entry, Time: a.Time, Actor: a.Actor, Detail: a.Detail,
		})
	}
	return out, nil
}

// AcceptBreak writes into the log that an actor accepts a break of it, which stays there. The log is verified at once: it counts
// as whole where no other break is open. Only a break that this Verifier found is accepted.
func (v *Verifier) AcceptBreak(ctx context.Context, actor string, in v1.AuditAccept) (*v1.AuditBreaks, error) {
	in.Reason = strings.TrimSpace(in.Reason)
	if in.Reason == "" {
		return nil, &refusal.Error{Code: "reason_missing", Status: refusal.Invalid, Detail: "no reason given", Hint: "say what is known of how the break came to be"}
	}
	state := v.State()
	i := slices.IndexFunc(state.Open, func(b chain.Break) bool { return b.Seq == in.Seq && b.To.Hash == in.Hash })
	if i < 0 {
		return nil, &refusal.Error{
			Code: "audit_break_unknown", Status: refusal.Conflict, Hint: "portcullis audit breaks",
			Detail: fmt.Sprintf("no break at audit entry %d that goes on from hash %.12s is open, by the last verification of this instance", in.Seq, in.Hash),
		}
	}
	b := state.Open[i]
	entry := b.Accept(v.o.Now(), actor, in.Reason)
	_, err := v.o.Store.Update(ctx, func(tx *store.Tx) error {
		end, err := audit.Latest(ctx, tx)
		if err != nil {
			return err
		}
		entry.Seq = end.Seq + 1
		return audit.Append(ctx, tx, entry)
	})
	if err != nil {
		if e, is := errors.AsType[*refusal.Error](err); is {
			return nil, e
		}
		return nil, refusal.Unconfirmed(err, "look before trying again: portcullis audit breaks")
	}
	v.o.Log.Warn("a break of the audit log was accepted", "actor", actor, "cause", b.Cause, "entry", b.Seq, "reason", in.Reason)
	v.accepted(&b, &entry)
	return v.Breaks(ctx)
}

// accepted has the state say what was accepted, and the log verified soon.
func (v *Verifier) accepted(b *chain.Break, by *chain.Entry) {
	a, _ := chain.AcceptanceOf(by)
	v.mu.Lock()
	s := &v.state
	s.Open = slices.DeleteFunc(slices.Clone(s.Open), func(o chain.Break) bool { return o == *b })
	s.Taken = append(slices.Clone(s.Taken), a)
	s.Broken = nil
	if len(s.Open) > 0 {
		s.Broken = &s.Open[0]
	} else {
		s.Since = time.Time{}
	}
	v.mu.Unlock()
	if v.o.OnState != nil {
		v.o.OnState(v.State())
	}
	select {
	case v.soon <- struct{}{}:
	default:
	}
}
