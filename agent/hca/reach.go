package hca

import (
	"context"
	"fmt"

	"portcullis/agent/hca/sysfs"
	"portcullis/fabricsm/ib"
)

// Reached is an open way to one adapter's firmware, for who writes to it.
type Reached struct {
	Opened
	Name string // for messages: PCI address, or the RDMA device without one
	// UMAD is the device node of each port that takes MADs, for example umad0; ""
	// where there is none.
	UMAD map[ib.PortNum]string

	node ib.GUID
}

// Reach opens the adapter with a node GUID. The vendor's tools are no way: they
// take keys on their command line, where every process of the host reads them.
func Reach(ctx context.Context, w Ways, node ib.GUID) (*Reached, error) {
	t, err := sysfs.Open(w.Sysfs)
	if err != nil {
		return nil, fmt.Errorf("sysfs: %w", err)
	}
	defer t.Close()
	functions, stray := t.Functions()
	for i := range functions {
		for j := range functions[i].RDMA {
			if functions[i].RDMA[j].NodeGUID == node {
				return w.reach(ctx, &functions[i], &functions[i].RDMA[j])
			}
		}
	}
	for i := range stray {
		if stray[i].NodeGUID == node {
			return w.reach(ctx, nil, &stray[i])
		}
	}
	return nil, fmt.Errorf("no adapter of this host has the node GUID %v", node)
}

func (w Ways) reach(ctx context.Context, f *sysfs.Function, r *sysfs.RDMA) (*Reached, error) {
	out := &Reached{Name: r.Name, UMAD: map[ib.PortNum]string{}, node: r.NodeGUID}
	if f != nil {
		out.Name = string(f.Address)
	}
	for _, p := range r.Ports {
		if p.LinkLayer == sysfs.LinkInfiniBand {
			out.UMAD[p.Num] = p.UMAD
		}
	}
	var err error
	if out.Opened, _, err = w.open(ctx, f, r); err != nil {
		return nil, fmt.Errorf("adapter %s: %w", out.Name, err)
	}
	return out, nil
}

// Reopen opens the way anew, as after a reset of the firmware, when the kernel has
// taken its device away and back.
func (r *Reached) Reopen(ctx context.Context, w Ways) error {
	again, err := Reach(ctx, w, r.node)
	if err != nil {
		return err
	}
	_ = r.Opened.Close()
	r.Opened, r.UMAD = again.Opened, again.UMAD
	return nil
}
