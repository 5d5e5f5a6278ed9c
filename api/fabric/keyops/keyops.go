// Package keyops implements operators' actions on the keys of devices: return, move, lend and retire them, and take them
// out sealed. Each is put into the audit log before it is done. It is done when the subnet manager shows it and has saved
// it.
package keyops

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"portcullis/api/audit"
	"portcullis/api/fabric/query"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
)

// Note puts into the audit log what is about to be done with keys.
type Note func(ctx context.Context, actor, action, object, code string) error

// Ops implements api.KeyOperator. All but Note and Rehearsed has to be set.
type Ops struct {
	Seen *query.Observer // of the subnet manager
	Log  *slog.Logger
	Note Note // nil: there is no audit log
	Now  func() time.Time

	// Sealed returns all facts that are stored, in which keys are sealed.
	Sealed func() ([]sm.Fact, error)
	// Rehearsed verifies and records that an escrow kit has every key; nil: this process keeps no records.
	Rehearsed func(ctx context.Context, actor string, r v1.KeyRehearsal) (*v1.KeyRehearsed, error)
	// Apply has the subnet manager do something, and returns when it is saved and done
	// says, of what is seen then, that it is so.
	Apply func(ctx context.Context, in sm.Input, done func() (bool, error)) error
}

// ReleaseKeys implements api.KeyOperator.
func (k *Ops) ReleaseKeys(ctx context.Context, actor string, r v1.KeyRelease) (*v1.FabricKeys, error) {
	now, err := k.managed(ctx)
	if err != nil {
		return nil, err
	}
	var in sm.Input = &sm.ReleaseKeys{}
	action := "release"
	if r.Resume {
		in, action = &sm.ResumeKeys{}, "resume"
	}
	if r.Resume && !now.Releasing {
		return nil, &refusal.Error{
			Code: "not_released", Status: refusal.Conflict, Detail: "keys are given out: there is nothing to resume", Hint: "portcullis fabric keys lists them",
		}
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys", "fabric/keys", action); err != nil {
		return nil, err
	}
	k.Log.Warn("an operator says what becomes of the keys of devices", "action", action, "actor", cmp.Or(actor, "local socket"))
	err = k.Apply(ctx, in, func() (bool, error) {
		now, err = k.Seen.Keys(ctx)
		return err == nil && now.Releasing != r.Resume, err
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}

// MoveKey implements api.KeyOperator.
func (k *Ops) MoveKey(ctx context.Context, actor string, m v1.KeyMove) (*v1.FabricKey, error) {
	if _, err := k.managed(ctx); err != nil {
		return nil, err
	}
	in := &sm.MoveKey{GUID: m.GUID}
	var err error
	if m.To != "" {
		in.Place, err = k.Seen.PlaceOf(m.To)
	} else {
		err = k.withheld(m.GUID)
	}
	if err != nil {
		return nil, err
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys.move", "fabric/keys/"+m.GUID.String(), m.To); err != nil {
		return nil, err
	}
	k.Log.Warn("an operator has verified a device at another place", "guid", m.GUID, "to", m.To, "actor", cmp.Or(actor, "local socket"))
	var row v1.FabricKey
	err = k.Apply(ctx, in, func() (seen bool, err error) {
		row, seen, err = k.Seen.KeyOf(m.GUID)
		return !seen || row.State != mkeys.KeyWithheld.String(), err
	})
	if err != nil {
		return nil, err
	}
	if row.GUID == 0 { // it is asked who is there
		row = v1.FabricKey{GUID: m.GUID, At: m.To, Kind: keys.MKey.String(), Place: in.Place, State: mkeys.KeyChanging.String()}
	}
	return &row, nil
}

// withheld refuses a device whose key is not withheld where it is seen.
func (k *Ops) withheld(guid ib.GUID) error {
	row, seen, err := k.Seen.KeyOf(guid)
	switch {
	case err != nil:
		return err
	case !seen:
		return &refusal.Error{
			Code: "port_unknown", Status: refusal.NotFound, Detail: "no end port " + guid.String() + " is seen",
			Hint: "one that holds a key does not answer at another place: say at which switch port it is, as SWITCH/PORT",
		}
	case row.State != mkeys.KeyWithheld.String():
		return &refusal.Error{
			Code: "key_not_withheld", Status: refusal.Conflict, Detail: "the key of " + guid.String() + " is not withheld: its state is " + row.State,
			Hint: "only a device that is at another place than the one it was given its key at is moved",
		}
	}
	return nil
}

// SealedKeys implements api.KeyOperator.
func (k *Ops) SealedKeys(ctx context.Context, actor string) (*v1.SealedKeys, error) {
	if _, err := k.managed(ctx); err != nil {
		return nil, err
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys.sealed", "fabric/keys", ""); err != nil {
		return nil, err
	}
	facts, err := k.Sealed()
	if err != nil {
		return nil, err
	}
	k.Log.Warn("the sealed keys of devices are given out", "actor", cmp.Or(actor, "local socket"))
	out := &v1.SealedKeys{Facts: []string{}}
	for i := range facts {
		f := &facts[i]
		if f.Sealed == "" && f.Cycle == nil && f.Kind != sm.FactBehind {
			continue
		}
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		out.Facts = append(out.Facts, string(line))
	}
	return out, nil
}

// RecordRehearsal implements api.KeyOperator.
func (k *Ops) RecordRehearsal(ctx context.Context, actor string, r v1.KeyRehearsal) (*v1.KeyRehearsed, error) {
	if k.Rehearsed == nil {
		return nil, &refusal.Error{
			Code: "keys_unmanaged", Status: refusal.Conflict, Detail: "this process keeps no record of rehearsals",
			Hint: "a service with the role sm and fabric.keys.root does",
		}
	}
	return k.Rehearsed(ctx, actor, r)
}

// managed returns how keys stand, if devices get any.
func (k *Ops) managed(ctx context.Context) (*v1.FabricKeys, error) {
	now, err := k.Seen.Keys(ctx)
	if err != nil {
		return nil, err
	}
	if !now.Managed {
		return nil, &refusal.Error{
			Code: "keys_unmanaged", Status: refusal.Conflict, Detail: "devices get no keys from this subnet manager",
			Hint: "fabric.keys of portcullisd.yaml says which they get",
		}
	}
	return now, nil
}

func (k *Ops) noteKeys(ctx context.Context, actor, action, object, code string) error {
	if k.Note == nil {
		return nil
	}
	return k.Note(ctx, actor, action, object, code)
}

// Audit returns a Note that writes to the audit log of a store.
func Audit(st *store.Store, now func() time.Time) Note {
	return func(ctx context.Context, actor, action, object, code string) error {
		_, err := st.Update(ctx, func(tx *store.Tx) error {
			return audit.Append(ctx, tx, audit.Entry{Time: now(), Actor: actor, Action: action, Object: object, Code: code})
		})
		if err != nil {
			return &refusal.Error{
				Code: v1.CodeUnavailable, Status: refusal.Unavailable, Err: err,
				Detail: "the audit log cannot be written, so nothing was done", Hint: "look at /readyz, then ask again",
			}
		}
		return nil
	}
}
