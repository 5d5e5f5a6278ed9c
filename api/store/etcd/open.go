// Package etcd is the store.Backend of the service: one etcd member with its state below
// a directory and no network listener at all, or an etcd of the site's own. It is the only
// package that imports etcd.
//
// etcd ends its process when it cannot write, and leaves locks behind when it is kept from
// that. So a service runs its member in a child process (Options.Command), which is started
// again until it serves. Tests and tools run it in their own process.
package etcd

import (
	"context"
	"errors"
	"log/slog"

	"portcullis/api/store"
)

// Options say where the records live: below Dir, or where Remote is. With both, Dir is
// locked and its format checked, and nothing else is kept there.
type Options struct {
	Dir     string       // state directory
	Remote  Remote       `json:"-"` // an etcd of the site's own, if it has endpoints
	Cluster Cluster      // of the member in Dir, if it has a name
	Prefix  string       // of every key, without slash at the end; "portcullis" when empty
	Log     *slog.Logger `json:"-"` // for etcd's errors; required
	Version string       // of the service, for the record of which one raised the format of Dir
	// NoSync leaves out the disk flush after each write. For tests only: a
	// power cut then loses what was promised.
	NoSync bool
	// Quota is the most bytes that the database of the embedded member may have; 0 means
	// 8 GiB. From 80 % on only removals are taken.
	Quota int64
	// Command is the program, and its arguments, that serves the embedded member by ServeMember in a process of its own.
	// The first element is the name that the program is called by, and the program is the one that is running. The store
	// then outlives the member: requests while there is none fail with store.ErrAway. Empty: the member runs in this
	// process, and its death is that of the store.
	Command []string `json:"-"`
	// OnHealth is called with the health of the store when it changes, by goroutines of the store,
	// which it must not hold up; nil: it is not called. Only a store with Command calls it.
	OnHealth func(Health) `json:"-"`

	// alone is the name of a member that is to be the only one of its cluster from its start
	// on (Recover); empty: it is started as it is.
	alone string
}

// Open opens the store and waits until it serves. A directory held by another
// process is refused with *InUseError, one that a newer service wrote with
// *NewerError. With Command, a member that does not start is tried again until ctx ends.
func Open(ctx context.Context, o Options) (*store.Store, error) {
	open := startMember
	switch {
	case len(o.Remote.Endpoints) > 0:
		open = openRemote
	case o.Dir == "":
		return nil, errors.New("store: name a state directory or etcd endpoints")
	}
	if len(o.Command) > 0 && len(o.Remote.Endpoints) == 0 {
		b, err := supervise(ctx, o)
		if err != nil {
			return nil, err
		}
		return store.New(b, o.Prefix), nil
	}
	b, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	return store.New(b, o.Prefix), nil
}
