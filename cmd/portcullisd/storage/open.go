package storage

import (
	"context"
	"fmt"
	"os"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
)

// Verb is the command by which this program serves the store's member in a process of its own. Only a service starts it.
const Verb = "store-member"

// Open opens the store, however long that takes: without it nothing is known of the fabric, so nothing is written to
// the fabric. A fault that does not pass by itself is an error. It calls extend meanwhile, whose context ends with it.
func Open(ctx context.Context, o etcd.Options, extend func(context.Context)) (*store.Store, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go extend(ctx)
	o.Command = []string{os.Args[0], Verb}
	st, err := etcd.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return st, nil
}
