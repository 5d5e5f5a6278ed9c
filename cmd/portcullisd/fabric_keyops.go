package main

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/fabric"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// keyNote puts into the audit log what is about to be done with keys.
type keyNote func(ctx context.Context, actor, action, object, code string) error

// ReleaseKeys implements api.KeyOperator.
func (k *marks) ReleaseKeys(ctx context.Context, actor string, r v1.KeyRelease) (*v1.FabricKeys, error) {
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
		return nil, &admission.Error{
			Code: "not_released", Status: admission.Conflict, Detail: "keys are given out: there is nothing to resume", Hint: "portcullis fabric keys lists them",
		}
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys", "fabric/keys", action); err != nil {
		return nil, err
	}
	k.log.Warn("an operator says what becomes of the keys of devices", "action", action, "actor", cmp.Or(actor, "local socket"))
	err = k.applied(ctx, in, func() (bool, error) {
		now, err = k.seen.Keys(ctx)
		return err == nil && now.Releasing != r.Resume, err
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}

// MoveKey implements api.KeyOperator.
func (k *marks) MoveKey(ctx context.Context, actor string, m v1.KeyMove) (*v1.FabricKey, error) {
	if _, err := k.managed(ctx); err != nil {
		return nil, err
	}
	in := &sm.MoveKey{GUID: m.GUID}
	var err error
	if m.To != "" {
		in.Place, err = k.seen.PlaceOf(m.To)
	} else {
		err = k.withheld(m.GUID)
	}
	if err != nil {
		return nil, err
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys.move", "fabric/keys/"+m.GUID.String(), m.To); err != nil {
		return nil, err
	}
	k.log.Warn("an operator has verified a device at another place", "guid", m.GUID, "to", m.To, "actor", cmp.Or(actor, "local socket"))
	var row v1.FabricKey
	err = k.applied(ctx, in, func() (seen bool, err error) {
		row, seen, err = k.seen.KeyOf(m.GUID)
		return !seen || row.State != sm.KeyWithheld.String(), err
	})
	if err != nil {
		return nil, err
	}
	if row.GUID == 0 { // it is asked who is there
		row = v1.FabricKey{GUID: m.GUID, At: m.To, Kind: keys.MKey.String(), Place: in.Place, State: sm.KeyChanging.String()}
	}
	return &row, nil
}

// withheld refuses a device whose key is not withheld where it is seen.
func (k *marks) withheld(guid ib.GUID) error {
	row, seen, err := k.seen.KeyOf(guid)
	switch {
	case err != nil:
		return err
	case !seen:
		return &admission.Error{
			Code: "port_unknown", Status: admission.NotFound, Detail: "no end port " + guid.String() + " is seen",
			Hint: "one that holds a key does not answer at another place: say at which switch port it is, as SWITCH/PORT",
		}
	case row.State != sm.KeyWithheld.String():
		return &admission.Error{
			Code: "key_not_withheld", Status: admission.Conflict, Detail: "the key of " + guid.String() + " is not withheld: its state is " + row.State,
			Hint: "only a device that is at another place than the one it was given its key at is moved",
		}
	}
	return nil
}

// SealedKeys implements api.KeyOperator.
func (k *marks) SealedKeys(ctx context.Context, actor string) (*v1.SealedKeys, error) {
	if _, err := k.managed(ctx); err != nil {
		return nil, err
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys.sealed", "fabric/keys", ""); err != nil {
		return nil, err
	}
	facts, err := k.sealed()
	if err != nil {
		return nil, err
	}
	k.log.Warn("the sealed keys of devices are given out", "actor", cmp.Or(actor, "local socket"))
	out := &v1.SealedKeys{Facts: []string{}}
	for i := range facts {
		f := &facts[i]
		if f.Sealed == "" && f.Cycle == nil {
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

// managed gives how keys stand, if devices get any.
func (k *marks) managed(ctx context.Context) (*v1.FabricKeys, error) {
	now, err := k.seen.Keys(ctx)
	if err != nil {
		return nil, err
	}
	if !now.Managed {
		return nil, &admission.Error{
			Code: "keys_unmanaged", Status: admission.Conflict, Detail: "devices get no keys from this subnet manager",
			Hint: "fabric.keys of portcullisd.yaml says which they get",
		}
	}
	return now, nil
}

func (k *marks) noteKeys(ctx context.Context, actor, action, object, code string) error {
	if k.keyNote == nil {
		return nil
	}
	return k.keyNote(ctx, actor, action, object, code)
}

// applied has the subnet manager do something, and waits until a view shows it and
// it is saved.
func (k *marks) applied(ctx context.Context, in sm.Input, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, maxMarkWait)
	defer cancel()
	// An input is taken only after the facts of the one before are saved, and one may
	// be on its way.
	for _, in := range []sm.Input{in, &sm.Woken{}, &sm.Woken{}} {
		if err := k.give(ctx, in); err != nil {
			return err
		}
	}
	for {
		next := k.next()
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return notTaken("it does not show it in force")
		}
	}
}

// auditKeys puts into the audit log of a store what operators do with keys.
func auditKeys(st *store.Store) keyNote {
	return func(ctx context.Context, actor, action, object, code string) error {
		_, err := st.Update(ctx, func(tx *store.Tx) error {
			return audit.Append(ctx, tx, audit.Entry{Time: time.Now(), Actor: actor, Action: action, Object: object, Code: code})
		})
		if err != nil {
			return &admission.Error{
				Code: v1.CodeUnavailable, Status: admission.Unavailable, Err: err,
				Detail: "the audit log cannot be written, so nothing was done", Hint: "look at /readyz, then ask again",
			}
		}
		return nil
	}
}

// sealedFacts gives the facts of the service, whose keys are sealed.
func (s *service) sealedFacts() ([]sm.Fact, error) {
	return fabric.New(fabric.Options{Store: s.store, Log: s.log}).Load()
}
