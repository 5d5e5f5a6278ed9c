package admission

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"portcullis/api/hostlabel"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/lifecycle"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Host returns one host.
func (s *Service) Host(ctx context.Context, id string) (*v1.Host, error) {
	h, _, err := s.host(ctx, id)
	return h, refusal.Explain(err)
}

// host returns one host and the revision as of which it stands so.
func (s *Service) host(ctx context.Context, id string) (*v1.Host, int64, error) {
	var out *v1.Host
	show := func(r store.Reader) error {
		f, err := s.gather(ctx, r, id)
		if err != nil {
			return err
		}
		out = shown(ctx, f, decide(f))
		return withLabels(ctx, r, out)
	}
	if tenancy.Confined(ctx) {
		snap, err := s.o.Store.Snapshot(ctx)
		if err == nil {
			err = s.checkOwned(ctx, snap, id)
		}
		if err == nil {
			err = show(snap)
		}
		return out, snap.Revision, err
	}
	revision, err := s.o.Store.View(ctx, show)
	return out, revision, err
}

// hostView shows a host. Good news (admitted, released) is shown only once it is recorded and audited; bad news at once.
func hostView(f *facts, d decision) *v1.Host {
	h := &v1.Host{
		ID: f.host.ID, EK: f.host.EK, Class: f.host.ReferenceClass(), HCAs: make([]v1.HCA, 0, len(f.host.HCAs)),
		Cluster: f.rec.Cluster, Tenant: f.rec.Tenant, Set: f.rec.Set, Epoch: f.rec.Epoch, Rack: f.host.Rack,
		Status: v1.HostStatus{Guards: d.guards, Since: f.rec.Since, LastDenial: f.rec.LastDenial()},
	}
	state := lifecycle.Of(d.life)
	switch recorded := hostrecord.PhaseOf(f.rec); {
	case d.phase == v1.PhaseAdmitted && recorded != v1.PhaseAdmitted:
		state = lifecycle.Granting
	case d.phase == v1.PhaseQuarantined && recorded == v1.PhaseReleasing:
		state = lifecycle.Releasing
	}
	h.Status.Phase, h.Status.State = phaseOf(state), v1.HostState(state.String())
	if len(d.want) > 0 {
		h.Status.PKey = f.rec.PKey
	}
	if f.rec.Cluster != "" && !f.rec.Admitted {
		h.Status.Window = f.rec.Window
	}
	if f.rec.Evidence != nil {
		h.Status.Attested, h.Status.Sealed = f.rec.Evidence.Time, f.rec.Sealed
		h.Status.Reference, h.Status.Waived = f.rec.Evidence.Reference, f.rec.Evidence.Waived
		for _, l := range f.rec.Evidence.Lapses {
			h.Status.Outdated = append(h.Status.Outdated, v1.Outdated{
				Cause: l.Cause, Detail: l.Detail, Since: l.Since, Withdraws: !f.rec.Admitted || f.withdraw[l.Cause],
			})
		}
	}
	for _, c := range f.rec.Conflicts {
		h.Status.Conflicts = append(h.Status.Conflicts, v1.Conflict{Time: c.Time, GUID: c.GUID, With: c.With})
	}
	for _, a := range f.host.HCAs {
		h.HCAs = append(h.HCAs, hcaView(f, a))
	}
	return h
}

func hcaView(f *facts, a inventory.HCA) v1.HCA {
	out := v1.HCA{NodeGUID: a.NodeGUID, SystemImageGUID: a.SystemImageGUID, Ports: make([]v1.HCAPort, 0, len(a.Ports))}
	for _, p := range a.Ports {
		out.Ports = append(out.Ports, v1.HCAPort{
			Num: p.Num, GUID: p.GUID, Cabled: p.Cable, Seen: f.ports[p.GUID].Place, PKeys: appliedPKeys(f, p.GUID),
		})
	}
	return out
}

func appliedPKeys(f *facts, g ib.GUID) []ib.PKey {
	var out []ib.PKey
	for k, st := range f.grants {
		if k.GUID == g && st.Applied() {
			out = append(out, k.PKey)
		}
	}
	slices.Sort(out)
	return out
}

// Watch sends the host now and after each change until ctx ends or the store
// fails; then the channel is closed. A slow reader misses states in between,
// never the last one.
func (s *Service) Watch(ctx context.Context, host string) (<-chan *v1.Host, error) {
	h, rev, err := s.host(ctx, host)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	out := make(chan *v1.Host)
	go s.watch(ctx, h, rev, out)
	return out, nil
}

func (s *Service) watch(ctx context.Context, h *v1.Host, rev int64, out chan<- *v1.Host) {
	defer close(out)
	id, pending := h.ID, out
	for changes := s.o.Store.Watch(ctx, "", rev); ; {
		select {
		case <-ctx.Done():
			return
		case pending <- h:
			pending = nil
		case c, ok := <-changes:
			if !ok || c.Err != nil {
				return
			}
			if !slices.ContainsFunc(c.Changes, func(ch store.Change) bool { return concerns(ch.Key, h) }) {
				continue
			}
			fresh, _, err := s.host(ctx, id)
			if err != nil {
				return
			}
			if !reflect.DeepEqual(fresh, h) {
				h, pending = fresh, out
			}
		}
	}
}

// concerns reports whether the record at key says something about the host.
func concerns(key string, h *v1.Host) bool {
	if labelled, ok := hostlabel.Records().KeyOf(key); strings.HasSuffix(key, "hosts/"+h.ID) || ok && labelled == h.ID {
		return true
	}
	for _, a := range h.HCAs {
		for _, p := range a.Ports {
			if strings.Contains(key, p.GUID.String()) {
				return true
			}
		}
	}
	return false
}
