package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// smSilence is how long the subnet manager's sign of life may be missing
// before it is shown as unreachable. It sends one every ten seconds.
const smSilence = 30 * time.Second

// Fabric returns the fabric as the subnet manager last published it, with inventory's names for its nodes.
func (s *Service) Fabric(ctx context.Context) (*v1.Fabric, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	nodes, _, err := records.Nodes().List(ctx, snap, "")
	if err != nil {
		return nil, refusal.Explain(err)
	}
	owners, err := nodeOwners(ctx, snap)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	sm, err := store.Optional(records.SMs().Get(ctx, snap, records.Master))
	if err != nil {
		return nil, refusal.Explain(err)
	}
	f := &v1.Fabric{Observed: sm.Updated, Nodes: make([]v1.Node, 0, len(nodes))}
	for _, n := range nodes {
		n.Value.Host = owners[n.Value.GUID]
		f.Nodes = append(f.Nodes, n.Value)
		count(&f.Summary, &n.Value)
	}
	f.Summary.Links /= 2 // counted at both ends
	return f, nil
}

func nodeOwners(ctx context.Context, r store.Reader) (map[ib.GUID]string, error) {
	hosts, _, err := inventory.Hosts().List(ctx, r, "")
	m := make(map[ib.GUID]string, len(hosts))
	for _, h := range hosts {
		for _, a := range h.Value.HCAs {
			m[a.NodeGUID] = h.Key
		}
	}
	return m, err
}

func count(c *v1.FabricCounts, n *v1.Node) {
	switch n.Type {
	case ib.NodeSwitch.String():
		c.Switches++
	case ib.NodeRouter.String():
		c.Routers++
	default:
		c.CAs++
	}
	for _, p := range n.Ports {
		if p.Peer != "" {
			c.Links++
		}
		if p.State == ib.PortActive.String() && p.Num != 0 {
			c.ActivePorts++
		}
	}
}

// SM returns the state of the subnet manager, or says that it is unreachable.
func (s *Service) SM(ctx context.Context) (*v1.SM, error) {
	rec, err := records.SMs().Get(ctx, s.o.Store, records.Master)
	if errors.Is(err, store.ErrNotFound) {
		return &v1.SM{State: "unreachable", Problems: []string{"no subnet manager has reported yet"}}, nil
	}
	if err != nil {
		return nil, refusal.Explain(err)
	}
	sm := rec.Value
	if age := s.now().Sub(sm.Updated); age > smSilence {
		sm.State, sm.Settled = "unreachable", false
		sm.Problems = append([]string{fmt.Sprintf("the subnet manager has been silent for %v; what is shown is its last report", age.Round(time.Second))}, sm.Problems...)
	}
	mark, err := review.Current(ctx, s.o.Store)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if mark != nil {
		sm.Problems = append([]string{fmt.Sprintf("the state is in review since %s: %s; portcullis restore review shows what differs from the fabric",
			mark.Since.Format(time.RFC3339), mark.From())}, sm.Problems...)
	}
	return &sm, nil
}
