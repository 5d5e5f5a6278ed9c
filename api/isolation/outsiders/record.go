package outsiders

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

const (
	// mostPKeys bounds the P_Keys that are recorded each by itself.
	mostPKeys = 1024
	// mostPorts bounds the ports that are recorded of a P_Key.
	mostPorts = 16
	// atOnce is how many records one transaction writes at most.
	atOnce = 100
)

// Port is a port at which packets of a P_Key pass that no membership explains.
type Port struct {
	Place ib.Place `json:"place"`
	GUID  ib.GUID  `json:"guid,omitzero"` // of the adapter's port; 0: none answers there
	Name  string   `json:"name,omitempty"`
	Party string   `json:"party,omitempty"` // tenant, or what else owns the port
	// Limited: packets pass between it and full members alone.
	Limited bool `json:"limited,omitempty"`
}

// record is what the store has of a P_Key, and of all P_Keys that are not recorded by themselves.
type record struct {
	Read  time.Time `json:"read"` // when the reading began that found it
	Ports []Port    `json:"ports,omitempty"`
	More  int       `json:"more,omitempty"` // ports that are not in Ports; of manyKey: P_Keys that have no record
}

// manyKey is the key of the record that says that there are more P_Keys than are recorded.
const manyKey = "many"

func stored() store.Collection[record] { return store.NewCollection[record]("isolation/outsiders", 1) }

// Outsider is a port, and the P_Keys of packets that pass there although no membership explains it.
type Outsider struct {
	Port
	PKeys []ib.PKey // full: packets pass between it and limited members too; each partition once
}

// Found is what one examination of all tenants found.
type Found struct {
	Begun     time.Time
	Outsiders []Outsider
}

// records returns what the store is to have.
func (f *Found) records() map[string]record {
	ports := map[ib.PKey]*record{}
	for i := range f.Outsiders {
		o := &f.Outsiders[i]
		for _, k := range o.PKeys {
			r := ports[k.Base()]
			if r == nil {
				r = &record{Read: f.Begun}
				ports[k.Base()] = r
			}
			if len(r.Ports) == mostPorts {
				r.More++
				continue
			}
			port := o.Port
			port.Limited = !k.IsFull()
			r.Ports = append(r.Ports, port)
		}
	}
	out := map[string]record{}
	for _, k := range slices.Sorted(maps.Keys(ports)) {
		if len(out) == mostPKeys {
			out[manyKey] = record{Read: f.Begun, More: len(ports) - mostPKeys}
			break
		}
		out[k.String()] = *ports[k]
	}
	return out
}

// Record has the store hold what was found, and no more of earlier examinations. Only the instance that leads may call it. A
// record that stays the same but for the time of the reading is written again, for its age to be true.
func Record(ctx context.Context, s *store.Store, f *Found) error {
	want := f.records()
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	have, _, err := stored().List(ctx, snap, "")
	if err != nil {
		return err
	}
	type change struct {
		key string
		to  *record
	}
	var changes []change
	for i := range have {
		if _, ok := want[have[i].Key]; !ok {
			changes = append(changes, change{key: have[i].Key})
		}
	}
	// What is added comes first: a transaction that fails later leaves more refused, and not less.
	var added []change
	for _, k := range slices.Sorted(maps.Keys(want)) {
		r := want[k]
		added = append(added, change{k, &r})
	}
	for some := range slices.Chunk(slices.Concat(added, changes), atOnce) {
		_, err := s.Update(ctx, func(tx *store.Tx) error {
			for _, c := range some {
				if c.to == nil {
					stored().Delete(tx, c.key)
				} else if err := stored().Put(tx, c.key, *c.to); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("record the ports that pass a P_Key without a membership: %w", err)
		}
	}
	return nil
}
