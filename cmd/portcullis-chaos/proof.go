package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

const (
	// proofsPerCheck is how many hosts smpquery looks at in one check.
	proofsPerCheck = 6
	// proveEvery says after how many faults there is such a check.
	proveEvery = 10
)

// prove has smpquery read the tables of a few hosts that stay in their cluster, adapter and switch port, under the M_Keys
// that an operator exports. So no key is lost, and a third party sees the same as direct questions to the simulator.
func (s *site) prove(ctx context.Context, steady []*machine, r *rand.Rand) error {
	mkeys, err := s.exportKeys(ctx)
	if err != nil {
		return err
	}
	client := ibsimlab.Client{Socket: s.socket, Dir: s.dir}
	for range proofsPerCheck {
		m := pick(r, steady)
		want := []ib.PKey{ib.DefaultPKeyLimited, s.keys[m.assigned()].Full()}
		for i := range m.hcas {
			a := &m.hcas[i]
			for _, at := range []struct {
				what, route string
				port        ib.PortNum
				key         ib.MKey
			}{
				{a.node, fmt.Sprintf("%s,%d", s.plan.route(a.leaf), a.place.Port), 0, mkeys[a.port]},
				{fmt.Sprintf("%s port %d", a.leaf, a.place.Port), s.plan.route(a.leaf), a.place.Port, mkeys[a.place.Switch]},
			} {
				got, err := client.PKeys(ctx, probe, at.route, at.port, at.key)
				if err != nil {
					return fmt.Errorf("smpquery at %s: %w", at.what, err)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					return fmt.Errorf("smpquery reads %v at %s, want %v", got, at.what, want)
				}
			}
		}
	}
	return nil
}

// exportKeys returns the M_Keys of devices as the operator's program exports them.
func (s *site) exportKeys(ctx context.Context) (map[ib.GUID]ib.MKey, error) {
	dir := s.path("mkeys")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if _, err := s.cli(ctx, "operator", "keys", "export", "--root", s.path("etc", "keys.root"), "--out", dir); err != nil {
		return nil, err
	}
	file := s.path("mkeys", "guid2mkey")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	entries, err := keyfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	out := make(map[ib.GUID]ib.MKey, len(entries))
	for _, e := range entries {
		out[e.GUID] = e.Key.M()
	}
	return out, nil
}

// route returns the directed route from the probe to a leaf: over the leaf of the probe and,
// to another leaf, over the first spine.
func (p *plan) route(leaf string) string {
	if leaf == p.leaves[0] {
		return "0,1"
	}
	return fmt.Sprintf("0,1,%d,%d", firstUplink, slices.Index(p.leaves, leaf)+1)
}
