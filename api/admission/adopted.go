package admission

import (
	"context"
	"fmt"
	"slices"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	"portcullis/fabricsm/ib"
)

// endAdopted withdraws the adopted memberships of the ports of a host, and of its places, and returns how many. What an operator
// orders is not asked of the brake.
func endAdopted(ctx context.Context, tx *store.Tx, f *facts) (n int, err error) {
	var ports []ib.GUID
	var places []ib.Place
	for _, p := range f.host.Ports() {
		ports = append(ports, p.GUID)
		if !p.Cable.IsZero() {
			places = append(places, p.Cable)
		}
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	keys, err := records.AdoptedOf(ctx, snap, ports, places)
	if err != nil {
		return 0, err
	}
	for _, k := range keys {
		g, err := store.Optional(records.Grants().Get(ctx, tx, k.String()))
		if err != nil {
			return 0, err
		}
		if g.Adopted == "" || g.Withdrawn {
			continue
		}
		g.Withdrawn, g.Since = true, f.now
		if err := records.Grants().Put(tx, k.String(), g); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// releaseAdopted is a release of a host that is in no cluster: it ends adopted memberships alone. done is false where it has none.
func (s *Service) releaseAdopted(ctx context.Context, tx *store.Tx, f *facts, actor string) (done bool, err error) {
	n, err := endAdopted(ctx, tx, f)
	if n == 0 || err != nil {
		return false, err
	}
	if err := tenancy.CheckHost(ctx, f.host.ID, "", 0); err != nil {
		return false, err
	}
	return true, s.log(ctx, tx, &audit.Change{Actor: actor, Action: "host.release", Object: "host/" + f.host.ID, Detail: "of no cluster" + endedToo(n)})
}

// endedToo says in an entry of the audit log that adopted memberships of a host end; "" for none.
func endedToo(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d adopted memberships of its ports end", n)
}

// dropUnfound has adopted memberships proven absent that no switch port has when the review of a restored state ends: they ended
// after the state was saved.
func (c *comparison) dropUnfound(s *Service, tx *store.Tx) error {
	for k, g := range c.grants {
		found := c.byPlace[k.Place]
		if g.Adopted == "" || g.Withdrawn || found != nil && slices.Contains(found.PKeys, formOf(k, &g)) {
			continue
		}
		g.Withdrawn, g.Since = true, s.now()
		if err := records.Grants().Put(tx, k.String(), g); err != nil {
			return err
		}
	}
	return nil
}
