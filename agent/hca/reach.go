package hca

import (
	"context"
	"fmt"

	"portcullis/agent/hca/sysfs"
	"portcullis/fabricsm/ib"
)

// Reached is an open way to one adapter's firmware, for a caller that writes to it.
type Reached struct {
	Opened
	Name string // for messages: PCI address, or the RDMA device without one
	// UMAD is the device node of each port that takes MADs, for example umad0; ""
	// where there is none.
	UMAD map[ib.PortNum]string

	node  ib.GUID
	claim *sysfs.Claim // nil: no PCI function belongs to the adapter
}

// Reach opens the adapter with a node GUID, unless another process has it open by
// Reach (sysfs.ErrClaimed): one writes at a time. The vendor's tools are no way: they
// take keys on their command line, where every process of the host reads them.
func Reach(ctx context.Context, w Ways, node ib.GUID) (*Reached, error) {
	return w.reachNode(ctx, node, nil)
}

// reachNode opens an adapter to which there is a claim, or none yet.
func (w Ways) reachNode(ctx context.Context, node ib.GUID, had *sysfs.Claim) (*Reached, error) {
	t, err := sysfs.Open(w.Sysfs)
	if err != nil {
		return nil, fmt.Errorf("sysfs: %w", err)
	}
	defer t.Close()
	functions, stray := t.Functions()
	for i := range functions {
		for j := range functions[i].RDMA {
			if functions[i].RDMA[j].NodeGUID == node {
				claim, err := t.Claim(functions[i].Address, had)
				if err != nil {
					return nil, err
				}
				out, err := w.reach(ctx, &functions[i], &functions[i].RDMA[j])
				if err != nil {
					if claim != had {
						claim.Close()
					}
					return nil, err
				}
				out.claim = claim
				return out, nil
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

// Reopen opens the way again, for example after a reset of the firmware, when the kernel has removed its device and added
// it again.
func (r *Reached) Reopen(ctx context.Context, w Ways) error {
	again, err := w.reachNode(ctx, r.node, r.claim)
	if err != nil {
		return err
	}
	_ = r.Opened.Close()
	r.Opened, r.UMAD, r.claim = again.Opened, again.UMAD, again.claim
	return nil
}

// Close ends it, so that the next process can start.
func (r *Reached) Close() error {
	err := r.Opened.Close()
	r.claim.Close()
	return err
}
