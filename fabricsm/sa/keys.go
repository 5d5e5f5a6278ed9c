package sa

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// KeyChanged reports a new SA_Key.
type KeyChanged struct {
	sm.Administration
	Epoch keys.Epoch
	Grace time.Time // until when the one before is taken; zero: there was none
}

// String implements fmt.Stringer.
func (e *KeyChanged) String() string {
	if e.Grace.IsZero() {
		return fmt.Sprintf("SA_Key %d is in force, the first one", e.Epoch)
	}
	return fmt.Sprintf("SA_Key %d is in force; the one before is taken until %s", e.Epoch, e.Grace.UTC().Format(time.RFC3339))
}

// KeyProblem reports why there is no new SA_Key. The agent tries again.
type KeyProblem struct {
	sm.Administration
	Reason string
}

// String implements fmt.Stringer.
func (e *KeyProblem) String() string { return "SA_Key stays as it is: " + e.Reason }

// retryKey is when a key is drawn again after that failed.
const retryKey = time.Minute

// keysOf returns the keys of a configuration with one key or none.
func keysOf(k ib.SAKey) (*trust.Keys, error) {
	if k.IsZero() {
		return trust.NewKeys(trust.KeyState{})
	}
	return trust.NewKeys(trust.KeyState{Record: keys.Record{
		Kind:    keys.SAKey,
		Current: keys.Held{Key: keys.New(k.Reveal()), Epoch: 1, Origin: keys.OriginImported, Since: time.Unix(0, 0).UTC()},
	}})
}

// restoreKeys takes the SA_Key that was in force.
func (a *Agent) restoreKeys(facts []sm.Fact) error {
	if !a.cfg.Key.IsZero() || a.cfg.Source == nil {
		return nil
	}
	state, err := trust.KeyStateOf(facts)
	if err != nil {
		return fmt.Errorf("restore the SA_Key: %w", err)
	}
	k, err := trust.NewKeys(state)
	if err != nil {
		return fmt.Errorf("restore the SA_Key: %w", err)
	}
	*a.keys = *k
	return nil
}

// keysDue returns when turnKeys has work to do; zero: never.
func (a *Agent) keysDue() time.Time {
	if !a.serving || a.cfg.Source == nil || !a.cfg.Key.IsZero() {
		return time.Time{}
	}
	if !a.drawAt.IsZero() {
		return a.drawAt
	}
	return a.keys.Wake(a.cfg.Trust.KeyPeriod)
}

// turnKeys ends a grace that is over, and makes the next SA_Key the current one when it is due.
func (a *Agent) turnKeys(now time.Time) {
	if !a.serving || a.cfg.Source == nil || !a.cfg.Key.IsZero() || now.Before(a.drawAt) {
		return
	}
	a.drawAt = time.Time{}
	changed := a.keys.Tick(now)
	if epoch := a.keys.Next(now, a.cfg.Trust.KeyPeriod); epoch != 0 {
		h, err := a.cfg.Source.Make(keys.SAKey, 0, epoch, now)
		if err == nil {
			err = a.keys.Rotate(now, h, a.cfg.Trust.KeyGrace)
		}
		if err != nil {
			a.drawAt = now.Add(retryKey)
			a.out.Events = append(a.out.Events, &KeyProblem{Reason: err.Error()})
		} else {
			changed = true
			a.out.Events = append(a.out.Events, &KeyChanged{Epoch: epoch, Grace: a.keys.State().GraceEnds})
		}
	}
	if changed {
		a.distrust()
		s := a.keys.State()
		a.out.Save = append(a.out.Save, s.Facts()...)
	}
}

// distrust ends the trust that was granted for keys that are no longer accepted.
func (a *Agent) distrust() {
	e := a.subs.Distrust(uint64(a.keys.Oldest()))
	a.informed(&e)
}

// SAKey returns the current key, or zero if there is none, for clients that may send trusted requests.
func (a *Agent) SAKey() ib.SAKey { return a.keys.Current() }
