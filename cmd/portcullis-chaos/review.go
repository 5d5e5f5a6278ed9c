package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// review does the operator's part: it rejects each host on which state and fabric do not agree, and ends the review. For a
// host that stayed in its cluster they must agree. holds is what ports held before, and moving reports whether a host was changed while
// the state was saved.
func (s *site) review(ctx context.Context, n *instance, holds tables, moving func(host string) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	differ, err := s.compared(ctx, n, holds, moving)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		if _, err := n.client.Review().Reject(ctx, v1.ReviewDecision{Hosts: differ, Reason: "chaos: it changed since"}); err != nil {
			return err
		}
	}
	var missing string
	err = program.Await(ctx, "rejected hosts are released", func() (bool, error) {
		for _, id := range differ {
			if missing = s.released(ctx, n, s.byID[id]); missing != "" {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, missing)
	}
	var last error
	err = program.Await(ctx, "the review ends", func() (bool, error) {
		_, last = n.client.Review().End(ctx, v1.ReviewEnd{Reason: "chaos: all was decided"})
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	s.say("        review on %s: %d hosts differed and were rejected; no port got a P_Key meanwhile", n.name(), len(differ))
	return nil
}

// compared returns the hosts that differ, once the instance has compared all of the fabric.
func (s *site) compared(ctx context.Context, n *instance, holds tables, moving func(string) bool) (differ []string, err error) {
	steady := 0
	for i := range s.hosts {
		if !churns(i) {
			steady++
		}
	}
	var missing string
	err = program.Await(ctx, "the restored state is compared with the fabric", func() (bool, error) {
		sm, err := n.client.SM().Get(ctx)
		if ctx.Err() != nil {
			return false, nil // the end of the wait is no finding
		}
		if err != nil || !sm.Settled {
			missing = fmt.Sprintf("%s has not settled (%v)", n.name(), err)
			return false, nil
		}
		r, err := n.client.Review().Get(ctx)
		if err != nil {
			missing = err.Error()
			return false, nil
		}
		if !r.Active {
			return false, fmt.Errorf("REVIEW: %s does not review its state", n.name())
		}
		differ = nil
		for i := range r.Differences {
			if d := &r.Differences[i]; !slices.Contains(differ, d.Host) {
				differ = append(differ, d.Host)
			}
		}
		if missing = s.unlisted(ctx, n, differ, holds, moving); missing != "" {
			return false, nil
		}
		missing = fmt.Sprintf("%d memberships agree, want those of %d hosts that stayed in their cluster", r.Agreed, steady)
		return r.Agreed >= rails*steady, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, missing)
	}
	for i, m := range s.hosts {
		if !churns(i) && slices.Contains(differ, m.id) {
			return nil, fmt.Errorf("REVIEW: %s stayed in its cluster, and state and fabric are said to differ", m.id)
		}
	}
	return differ, nil
}

// unlisted says which host's port holds a P_Key that the state does not explain, although
// the review does not list the host; "" if there is none. A state that was saved while a host was being released goes on with
// that, and does not ask.
func (s *site) unlisted(ctx context.Context, n *instance, differ []string, holds tables, moving func(string) bool) string {
	all, err := n.client.Hosts().All(ctx)
	if err != nil {
		return err.Error()
	}
	for i := range all {
		m := s.byID[all[i].ID]
		if m == nil || slices.Contains(differ, m.id) {
			continue
		}
		for r := range m.hcas {
			gate := m.hcas[r].gate()
			for key := range holds[gate] {
				if moving(m.id) && !slices.Contains(s.fabric.PKeys(gate.Node, gate.Port), key) {
					continue
				}
				if all[i].Cluster == "" || key.Base() != s.keys[all[i].Cluster].Base() {
					return fmt.Sprintf("the switch port of %s holds %v, the state has the host in cluster %q, and the review does not list it", m.hcas[r].node, key, all[i].Cluster)
				}
			}
		}
	}
	return ""
}

// released says what a host still holds; "" if it is in no cluster, and its ports hold no
// P_Key of a tenant.
func (s *site) released(ctx context.Context, n *instance, m *machine) string {
	h, err := n.client.Hosts().Get(ctx, m.id)
	if err != nil {
		return err.Error()
	}
	if h.Cluster != "" || h.Status.Phase != v1.PhaseQuarantined {
		return fmt.Sprintf("%s is %s in cluster %q", m.id, h.Status.Phase, h.Cluster)
	}
	for r := range m.hcas {
		for _, at := range []sim.Endpoint{m.hcas[r].end(), m.hcas[r].gate()} {
			for _, key := range s.fabric.PKeys(at.Node, at.Port) {
				if key.Base() != ib.DefaultPKeyLimited {
					return fmt.Sprintf("%s port %d holds %v", at.Node, at.Port, key)
				}
			}
		}
	}
	return ""
}
