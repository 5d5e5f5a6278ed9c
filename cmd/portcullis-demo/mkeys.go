package main

import (
	"context"
	"fmt"
	"os"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys/keyfile"
)

// locked shows that devices answer only requests with their M_Key, and has the operator export the keys for all later
// reads. ibsim keeps no keys.
func (t *story) locked(ctx context.Context) error {
	if t.options.kind == ibsimFabric {
		return nil
	}
	if _, err := t.cli(ctx, "keys", "export", "--root", t.path("etc", "keys.root"), "--out", t.path("mkeys")); err != nil {
		return err
	}
	file := t.path("mkeys", "guid2mkey")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	entries, err := keyfile.Parse(file, data)
	if err != nil {
		return err
	}
	t.mkeys = make(map[ib.GUID]ib.MKey, len(entries))
	owner := make(map[ib.MKey]ib.GUID, len(entries))
	for _, e := range entries {
		if other, taken := owner[e.Key.M()]; taken {
			return fmt.Errorf("%v and %v have the same M_Key", e.GUID, other)
		}
		t.mkeys[e.GUID], owner[e.Key.M()] = e.Key.M(), e.GUID
	}
	a := t.hosts[0].hcas[0]
	if table, err := t.reader.pkeys(ctx, toHCA(a), 0, ib.MKey{}); err == nil {
		return fmt.Errorf("HCA %s answers with %v to who shows no M_Key", a.node, table)
	}
	t.say("%d devices have M_Keys, each its own: without, %s reads nothing; the operator exports them for it", len(entries), t.reader.name())
	return nil
}
