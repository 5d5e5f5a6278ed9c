package derive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/discovered"
)

// Revisions keeps the revisions of the declared topology.
type Revisions interface {
	// InForce returns the revision in force as of a snapshot, nil without one.
	InForce(ctx context.Context, r store.Reader) (*topospec.Spec, error)
	// DraftOf keeps as a draft what write makes of the revision in force.
	DraftOf(ctx context.Context, author, source, why string, write func(active *topospec.Spec) (*topospec.Revision, error)) (*v1.TopospecRevision, error)
}

// Options configure a Service. All but Seen are required.
type Options struct {
	Store     *store.Store
	Revisions Revisions
	// Seen returns the fabric as the Subnet Manager sees it; nil: another process has the Subnet Manager.
	Seen func() (*topo.Fabric, error)
}

// Service makes drafts of the inventory, and compares it with the revision in force and the fabric. Methods are safe for
// concurrent use. Refusals are *refusal.Error.
type Service struct{ o Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// source is what revisions and problems call the inventory.
const source = "inventory"

// Draft keeps a draft of the inventory as it is now. It is checked, approved and activated as any other draft.
func (s *Service) Draft(ctx context.Context, actor string, in v1.TopospecFromInventory) (*v1.TopospecRevision, error) {
	return s.o.Revisions.DraftOf(ctx, actor, source, in.Reason, func(active *topospec.Spec) (*topospec.Revision, error) {
		c, _, err := s.load(ctx)
		if err != nil {
			return nil, err
		}
		if active == nil && in.Fabric == "" {
			return nil, refusal.New(refusal.Invalid, "fabric_missing", "name it; later drafts are of the fabric in force", "no topology is in force, and the draft names no fabric")
		}
		r, err := Revision(c, active, in.Fabric)
		return r, refuse(err)
	})
}

// refuse makes a refusal of the problems of an inventory.
func refuse(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	return &refusal.Error{
		Code: "inventory_incomplete", Status: refusal.Conflict, Problems: lines, Err: err,
		Detail: fmt.Sprintf("no topology can be made of the inventory: %d problems", len(lines)), Hint: "import what is missing, and try again",
	}
}

func (s *Service) load(ctx context.Context) (*inventory.Contents, *topospec.Spec, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, nil, refusal.Explain(err)
	}
	c, err := inventory.Load(ctx, snap)
	if err != nil {
		return nil, nil, refusal.Explain(err)
	}
	active, err := s.o.Revisions.InForce(ctx, snap)
	return c, active, err
}

// maxDifferences bounds the differences of one answer; more are counted.
const maxDifferences = 1000

// Check compares the inventory with the revision in force and with the fabric as it is seen.
func (s *Service) Check(ctx context.Context) (*v1.InventoryCheck, error) {
	c, active, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	out := &v1.InventoryCheck{Topology: v1.InventoryComparison{Differences: []v1.InventoryDifference{}}, Fabric: v1.InventoryComparison{Differences: []v1.InventoryDifference{}}}
	r, err := Revision(c, active, source)
	if err != nil {
		return nil, refuse(err)
	}
	own, err := topospec.Compile(source, r)
	if err != nil {
		return nil, refuse(err)
	}
	if active == nil {
		out.Topology.Why = "no topology is in force: portcullis topospec draft --from-inventory makes one"
	} else {
		out.Revision = active.Revision().Number
		fill(&out.Topology, diff.Compare(own, active, diff.Everything))
	}
	seen, err := s.seen()
	if err != nil {
		out.Fabric.Why = err.Error()
		return out, nil
	}
	fill(&out.Fabric, diff.Compare(own, seen, diff.CablesOnly))
	return out, nil
}

// seen returns the fabric as it is seen, in the form of a topology.
func (s *Service) seen() (*topospec.Spec, error) {
	if s.o.Seen == nil {
		return nil, errors.New("this process does not see the fabric: ask the service that runs the Subnet Manager")
	}
	f, err := s.o.Seen()
	if err != nil {
		return nil, err
	}
	r, err := discovered.Revision(f, "seen")
	if err != nil {
		return nil, err
	}
	return topospec.Compile("fabric", r)
}

// fill enters a report that has the inventory first.
func fill(out *v1.InventoryComparison, r *diff.Report) {
	out.Compared, out.Same = true, r.Same
	for _, i := range r.Items {
		if i.Kind == diff.Missing && i.Expected.IsZero() {
			continue // a port that is dark in both: only one of them says so
		}
		if len(out.Differences) == maxDifferences {
			out.More++
			continue
		}
		out.Differences = append(out.Differences, v1.InventoryDifference{Kind: string(i.Kind), Text: i.String(), Port: i.Port, Inventory: i.Was, Other: i.Is})
	}
}
