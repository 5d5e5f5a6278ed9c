package outsiders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// hint is what to do about a refusal.
const hint = "portcullis verify reads the tables again and shows the packet; remove the P_Key from that port, or release the host behind it, then ask again"

// vagueHint is the hint for a credential that must not learn of others.
const vagueHint = "ask an operator to run portcullis verify, which names the port, then ask again"

// Asked is a membership that is asked for.
type Asked struct {
	Key     ib.PKey    // limited: no packet passes between two limited members
	Subject string     // the host or cluster, for the refusal
	Own     []ib.Place // of the ports that are to be members
	// Vague has the refusal name no port, device and owner: they may be of others than the credential has to do with.
	Vague bool
}

// Check refuses a membership of a partition if the newest examination found a port of others at which its packets
// pass and which no record explains since. What it read is a condition of the transaction.
func Check(ctx context.Context, tx *store.Tx, a Asked) error {
	key, subject := a.Key, a.Subject
	base := key.Base()
	r, err := stored().Get(ctx, tx, base.String())
	if errors.Is(err, store.ErrNotFound) {
		return many(ctx, tx, base, subject)
	}
	if err != nil {
		return err
	}
	mine := map[ib.Place]bool{}
	for _, at := range a.Own {
		mine[at] = true
	}
	for i := range r.Value.Ports {
		p := &r.Value.Ports[i]
		if mine[p.Place] || p.Limited && !key.IsFull() {
			continue
		}
		explained, err := explains(ctx, tx, base, p)
		if err != nil {
			return err
		}
		if !explained && a.Vague {
			return refusal.New(refusal.Conflict, v1.CodeOpensPath, vagueHint, "%s: packets with P_Key %v pass at a port that is no member, by what was read at %s",
				subject, base.Full(), stamp(r.Value.Read))
		} else if !explained {
			return refuse(subject, base, p, &r.Value)
		}
	}
	if r.Value.More > 0 {
		return refusal.New(refusal.Conflict, v1.CodeOpensPath, hint, "%s: packets with P_Key %v pass at more than %d ports that are no members, by what was read at %s",
			subject, base.Full(), len(r.Value.Ports), stamp(r.Value.Read))
	}
	return nil
}

// Held returns the P_Keys, membership bit clear, whose packets pass at ports that were no members at the newest examination of all tenants, as far
// as they are recorded.
func Held(ctx context.Context, n store.Snapshot) (map[ib.PKey]bool, error) {
	list, _, err := stored().List(ctx, n, "")
	if err != nil {
		return nil, err
	}
	out := map[ib.PKey]bool{}
	for i := range list {
		if k, err := ib.ParsePKey(list[i].Key); err == nil {
			out[k] = true
		}
	}
	return out, nil
}

// explains reports whether the port has a membership by now.
func explains(ctx context.Context, tx *store.Tx, base ib.PKey, p *Port) (bool, error) {
	_, err := records.Grants().Get(ctx, tx, records.Key{PKey: base, GUID: p.GUID, Place: p.Place}.String())
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func refuse(subject string, base ib.PKey, p *Port, r *record) error {
	at := fmt.Sprintf("switch %v port %d", p.Place.Switch, p.Place.Port)
	behind := "behind which nothing answers"
	if p.GUID != 0 {
		behind = fmt.Sprintf("behind which is %s, port GUID %v", p.Name, p.GUID)
	}
	return refusal.New(refusal.Conflict, v1.CodeOpensPath, hint,
		"%s: a packet with P_Key %v would pass between it and %s, %s (%s). That port is no member, and its P_Key tables let the packet pass, by what was read at %s",
		subject, base.Full(), at, behind, p.Party, stamp(r.Read))
}

// many refuses if the examination found more P_Keys at such ports than are recorded.
func many(ctx context.Context, tx *store.Tx, base ib.PKey, subject string) error {
	r, err := stored().Get(ctx, tx, manyKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return refusal.New(refusal.Conflict, v1.CodeOpensPath, hint,
		"%s: ports that are no members pass packets of %d P_Keys and more, by what was read at %s, and whether %v is among them is not recorded",
		subject, mostPKeys+r.Value.More, stamp(r.Value.Read), base.Full())
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
