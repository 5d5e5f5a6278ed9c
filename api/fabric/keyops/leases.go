package keyops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/mkeys"
)

// LendKey implements api.KeyOperator.
func (k *Ops) LendKey(ctx context.Context, actor string, l v1.KeyLoan) (*v1.LentKey, error) {
	if _, err := k.managed(ctx); err != nil {
		return nil, err
	}
	row, err := k.lendable(l.GUID, l.Seconds > 0)
	if err != nil {
		return nil, err
	}
	to := cmp.Or(health.CleanReason(l.To), "a tool")
	in, code := &sm.LendKey{GUID: l.GUID}, "returned"
	if l.Seconds > 0 {
		period := time.Duration(l.Seconds) * time.Second
		in.Until, in.To, code = k.Now().Add(period), to, fmt.Sprintf("%v to %s", period, to)
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys.lend", "fabric/keys/"+l.GUID.String(), code); err != nil {
		return nil, err
	}
	k.Log.Warn("an operator lends the key of a device, or ends that", "guid", l.GUID, "for", code, "actor", cmp.Or(actor, "local socket"))
	was := row.Lent
	err = k.Apply(ctx, in, func() (bool, error) {
		var err error
		row, _, err = k.Seen.KeyOf(l.GUID)
		return row.Lent.IsZero() == (l.Seconds == 0) && (l.Seconds == 0 || !row.Lent.Equal(was)), err
	})
	if err != nil {
		return nil, err
	}
	out := &v1.LentKey{FabricKey: row, Facts: []string{}}
	if l.Seconds > 0 {
		out.Facts, err = k.sealedOf(l.GUID)
	}
	return out, err
}

// lendable refuses a device that is not on its key, or whose key is not lent.
func (k *Ops) lendable(guid ib.GUID, lend bool) (v1.FabricKey, error) {
	row, seen, err := k.Seen.KeyOf(guid)
	switch {
	case err != nil:
		return row, err
	case !seen:
		return row, &refusal.Error{
			Code: "port_unknown", Status: refusal.NotFound, Detail: "no end port " + guid.String() + " is seen",
			Hint: "portcullis fabric keys lists devices and how they stand to their keys",
		}
	case lend && (row.State != mkeys.KeyHeld.String() || row.Exposed):
		return row, &refusal.Error{
			Code: "key_not_held", Status: refusal.Conflict, Detail: "the key of " + guid.String() + " is not lent: its state is " + row.State,
			Hint: "a key that is changing is lent when that is over; ask again",
		}
	case !lend && row.Lent.IsZero():
		return row, &refusal.Error{
			Code: "key_not_lent", Status: refusal.Conflict, Detail: "the key of " + guid.String() + " is not lent", Hint: "portcullis fabric keys shows which are",
		}
	}
	return row, nil
}

// LendSAKey implements api.KeyOperator.
func (k *Ops) LendSAKey(ctx context.Context, actor string, l v1.SAKeyLoan) (*v1.SealedKeys, error) {
	out, err := k.sealedFact(keys.SAKey, 0)
	if err != nil {
		return nil, err
	}
	if len(out) < 2 { // the vault alone, or nothing
		return nil, &refusal.Error{
			Code: "sa_key_unmanaged", Status: refusal.Conflict, Detail: "the service has drawn no SA_Key",
			Hint: "it draws one as master of a fabric if fabric.keys.root is named and fabric.sa.key_file is not; a key of that file is there for who may read it",
		}
	}
	to := cmp.Or(health.CleanReason(l.To), "a tool")
	if err := k.noteKeys(ctx, actor, "fabric.keys.sa_key", "fabric/keys/sa_key", to); err != nil {
		return nil, err
	}
	k.Log.Warn("an operator takes the SA_Key out, sealed", "to", to, "actor", cmp.Or(actor, "local socket"))
	return &v1.SealedKeys{Facts: out}, nil
}

// sealedOf returns what is stored about the M_Key of one device, and what the vault needs to open it.
func (k *Ops) sealedOf(guid ib.GUID) ([]string, error) { return k.sealedFact(keys.MKey, guid) }

// sealedFact is sealedOf for a key of any kind.
func (k *Ops) sealedFact(kind keys.Kind, guid ib.GUID) ([]string, error) {
	facts, err := k.Sealed()
	if err != nil {
		return nil, err
	}
	out := []string{}
	for i := range facts {
		f := &facts[i]
		if f.Kind != sm.FactVault && (f.Kind != sm.KeyFact(kind) || f.GUID != guid) {
			continue
		}
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		out = append(out, string(line))
	}
	return out, nil
}

// RetireKeys implements api.KeyOperator.
func (k *Ops) RetireKeys(ctx context.Context, actor string, r v1.KeyRetirement) (*v1.FabricKeys, error) {
	if _, err := k.managed(ctx); err != nil {
		return nil, err
	}
	if err := k.retirable(r.GUID); err != nil {
		return nil, err
	}
	if err := k.noteKeys(ctx, actor, "fabric.keys.retire", "fabric/keys/"+r.GUID.String(), ""); err != nil {
		return nil, err
	}
	k.Log.Warn("an operator says that a device left permanently", "guid", r.GUID, "actor", cmp.Or(actor, "local socket"))
	err := k.Apply(ctx, &sm.RetireKey{GUID: r.GUID}, func() (bool, error) { return k.Seen.Retired(r.GUID) })
	if err != nil {
		return nil, err
	}
	return k.Seen.Keys(ctx)
}

// retirable refuses a device that is there, and one that never had a key.
func (k *Ops) retirable(guid ib.GUID) error {
	row, seen, err := k.Seen.KeyOf(guid)
	if err != nil {
		return err
	}
	if seen {
		return &refusal.Error{
			Code: "key_in_use", Status: refusal.Conflict, Detail: "the keys of " + guid.String() + " are not destroyed: it is seen as " + row.At,
			Hint: "take the device away first, or it is out of reach for ever",
		}
	}
	facts, err := k.Sealed()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(facts, func(f sm.Fact) bool { return f.GUID == guid && f.Kind == sm.KeyFact(keys.MKey) }) {
		return &refusal.Error{
			Code: "key_unknown", Status: refusal.NotFound, Detail: "no device " + guid.String() + " was given an M_Key",
			Hint: "say the port GUID, which is not always the node GUID",
		}
	}
	return nil
}
