// Package instances keeps which instances of the service share one store: how each is
// reached, and by which port it manages the fabric. Each instance writes its own record.
package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// Absent is how long an instance that does not write its record is still counted as one. A
// machine that is repaired meanwhile comes back as what it was.
const Absent = 7 * 24 * time.Hour

// Instance is one instance of the service.
type Instance struct {
	// API is where its HTTPS API is reached, https://HOST:PORT; "" where it has none.
	API string `json:"api,omitempty"`
	// Pin is the SHA-256 of the public key (SubjectPublicKeyInfo) of its TLS certificate.
	Pin []byte `json:"pin,omitempty"`
	// Manages says that it can lead as Subnet Manager.
	Manages bool `json:"manages,omitempty"`
	// Port is the port GUID by which it managed the fabric last, and Place the switch port
	// that this one is cabled to; zero before it did.
	Port  ib.GUID  `json:"port,omitzero"`
	Place ib.Place `json:"place,omitzero"`

	Seen time.Time `json:"seen"` // when it wrote the record
}

func all() store.Collection[Instance] { return store.NewCollection[Instance]("instances", 1) }

// Named is an Instance with its name.
type Named struct {
	Name string
	Instance
}

// List returns the instances that wrote their record within Absent before now, by name.
func List(ctx context.Context, r store.Reader, now time.Time) ([]Named, error) {
	recs, _, err := all().List(ctx, r, "")
	if err != nil {
		return nil, fmt.Errorf("list the instances: %w", err)
	}
	var out []Named
	for _, rec := range recs {
		if now.Sub(rec.Value.Seen) < Absent {
			out = append(out, Named{Name: rec.Key, Instance: rec.Value})
		}
	}
	slices.SortFunc(out, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Update changes the record of an instance, which it makes where there is none, and sets
// Seen. It writes nothing where change leaves the record as it was and Seen is younger
// than an hour.
func Update(ctx context.Context, s *store.Store, name string, now time.Time, change func(*Instance)) error {
	_, err := s.Update(ctx, func(tx *store.Tx) error {
		rec, err := all().Get(ctx, tx, name)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		next := rec.Value
		next.Pin = slices.Clone(next.Pin)
		change(&next)
		if err == nil && next.same(&rec.Value) && now.Sub(rec.Value.Seen) < time.Hour && !now.Before(rec.Value.Seen) {
			return nil
		}
		next.Seen = now
		return all().Put(tx, name, next)
	})
	if err != nil {
		return fmt.Errorf("record the instance %s: %w", name, err)
	}
	return nil
}

// same reports whether two records differ in Seen at most.
func (i *Instance) same(o *Instance) bool {
	return i.API == o.API && slices.Equal(i.Pin, o.Pin) && i.Manages == o.Manages && i.Port == o.Port && i.Place == o.Place
}

// Forget deletes the record of an instance that is there no longer.
func Forget(tx *store.Tx, name string) { all().Delete(tx, name) }
