package leadership

import (
	"context"
	"log/slog"
	"time"

	"portcullis/api/instances"
	"portcullis/api/store"
)

const (
	// announceEvery is how often an instance looks whether its record is right.
	announceEvery = 10 * time.Minute

	// announceTime bounds one attempt to write it.
	announceTime = 10 * time.Second
)

// Announcer writes how this instance is reached.
type Announcer struct {
	Store   *store.Store
	Name    string          // of this instance
	API     func() string   // returns where its API is reached; "" where it has none
	Pin     func() []byte   // returns the SHA-256 of the public key of its TLS certificate; nil: it has none
	Manages bool            // it can lead as Subnet Manager
	Renewed <-chan struct{} // has a token after the TLS certificate was read again
	Log     *slog.Logger
}

// Announce writes the record of this instance.
func (a *Announcer) Announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	return instances.Update(ctx, a.Store, a.Name, time.Now().UTC().Round(0), func(i *instances.Instance) {
		i.API, i.Pin, i.Manages = a.API(), nil, a.Manages
		if a.Pin != nil {
			i.Pin = a.Pin()
		}
	})
}

// Keep keeps the record of this instance right until ctx ends.
func (a *Announcer) Keep(ctx context.Context) {
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.Renewed:
		}
		if err := a.Announce(ctx); err != nil && ctx.Err() == nil {
			a.Log.Warn("other instances may not find this one", "error", err)
		}
	}
}
