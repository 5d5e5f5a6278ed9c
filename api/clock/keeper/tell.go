package keeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/clock"
	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// maxUntold bounds the jumps that wait for a store which is away.
const maxUntold = 16

// report reports the jumps that happened.
func (k *Keeper) report(ctx context.Context) error {
	k.mu.Lock()
	k.water.Now(k.reading())
	for _, j := range k.water.Jumps() {
		if began(&j) {
			k.set[j.Ahead]++
		}
		k.jumps = append(k.jumps, j)
	}
	k.jumps = k.jumps[max(0, len(k.jumps)-maxUntold):]
	jumps := slices.Clone(k.jumps)
	now := k.water.Now(k.reading())
	k.mu.Unlock()
	if len(jumps) == 0 {
		return nil
	}
	_, err := k.o.Store.Update(ctx, func(tx *store.Tx) error {
		for i := range jumps {
			if err := events.Record(ctx, tx, now, k.event(&jumps[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		k.mu.Lock()
		k.jumps = nil // only Run adds some, and only Run is here
		k.mu.Unlock()
	}
	return err
}

// began reports whether a jump is one, not the end of one.
func began(j *clock.Jump) bool { return j.Now != clock.Steady || j.Ahead }

func (k *Keeper) event(j *clock.Jump) v1.Event {
	of, by := "the clock of this machine", ""
	if k.o.Instance != "" {
		of = "the clock of instance " + k.o.Instance
	}
	if j.By != "" {
		by = ", recorded by instance " + j.By
	}
	e := v1.Event{
		Type: events.ClockJump, By: events.ByService, Cause: "back",
		Expected: fmt.Sprintf("%s or later%s", j.Time.Format(time.RFC3339), by),
		Seen:     fmt.Sprintf("%s shows %s", of, j.Wall.Format(time.RFC3339)),
		Do:       "correct the clock, and see why it was set; if the recorded time is the wrong one: portcullis clock set --reason TEXT",
	}
	switch {
	case j.Now == clock.Steady && j.Ahead:
		e.Cause = "ahead"
		e.Do = "if the machine did not sleep and its clock was right before, correct it; the recorded time is wrong then, too: portcullis clock set --reason TEXT"
	case j.Now == clock.Ahead:
		e.Cause = "ahead"
	case j.Now == clock.Steady:
		e.Type, e.Cause, e.Do = events.ClockSteady, "caught-up", ""
		e.Seen += ", and is believed again"
	}
	return e
}

// Clock returns how the clock is.
func (k *Keeper) Clock(context.Context) (*v1.Clock, error) {
	s := k.Standing()
	return &v1.Clock{
		State: s.State.String(), Since: s.Since, Time: s.Time, Machine: s.Wall, Off: s.Off().Round(time.Second).String(),
		Highest: s.Mark.Highest, By: s.Mark.By, SetTimes: s.Mark.Resets, Instance: k.o.Instance, Tolerance: clock.Tolerance.String(),
	}, nil
}

// SetClock sets the recorded time to the machine's, for all instances. A period that was over by the time that was recorded
// before, and is not by this one, is not over any more.
func (k *Keeper) SetClock(ctx context.Context, actor string, in v1.ClockSet) (*v1.Clock, error) {
	in.Reason = strings.TrimSpace(in.Reason)
	if in.Reason == "" {
		return nil, &refusal.Error{Code: "reason_missing", Status: refusal.Invalid, Detail: "no reason given", Hint: "say why the recorded time is wrong"}
	}
	_, err := k.o.Store.Update(ctx, func(tx *store.Tx) error {
		was, err := k.recorded(ctx, tx)
		if err != nil {
			return err
		}
		k.mu.Lock()
		k.water.Take(was, k.reading())
		s := k.water.Standing(k.reading())
		k.mu.Unlock()
		if off := s.Wall.Sub(in.Time); off.Abs() > clock.Tolerance {
			return &refusal.Error{
				Code: "clock_differs", Status: refusal.Conflict, Hint: "correct the clock of the service's machine first, and that of yours",
				Detail: fmt.Sprintf("the clock of the service's machine shows %s, and you say that it is %s", s.Wall.Format(time.RFC3339), in.Time.UTC().Format(time.RFC3339)),
			}
		}
		if s.State == clock.Steady {
			return &refusal.Error{
				Code: "clock_steady", Status: refusal.Conflict, Hint: "portcullis clock show",
				Detail: "the clock of this instance is believed: there is nothing to set",
			}
		}
		m := clock.Mark{Highest: s.Wall, By: k.o.Instance, Resets: was.Resets + 1}
		if err := Marks().Put(tx, markKey, m); err != nil {
			return err
		}
		detail := fmt.Sprintf("from %s to %s: %s", was.Highest.Format(time.RFC3339), m.Highest.Format(time.RFC3339), in.Reason)
		if err := audit.Append(ctx, tx, audit.Entry{Time: s.Time, Actor: actor, Action: "clock.set", Object: "clock", Code: "ok", Detail: detail}); err != nil {
			return err
		}
		return events.Record(ctx, tx, s.Time, v1.Event{
			Type: events.ClockSteady, By: events.ByService, Cause: "set", Expected: "a time that does not go back", Seen: actor + " set the recorded time " + detail,
		})
	})
	if err == nil {
		err = k.Read(ctx)
	}
	if err != nil {
		return nil, explain(err)
	}
	return k.Clock(ctx)
}

func explain(err error) error {
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		return e
	}
	return refusal.Unconfirmed(err, "look before trying again: portcullis clock show")
}
