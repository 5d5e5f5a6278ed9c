package admission

import (
	"context"
	"errors"

	"portcullis/api/fabric/ledger"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// gather reads the facts about one host through r. With a transaction each of
// them becomes a condition of its commit.
func (s *Service) gather(ctx context.Context, r store.Reader, id string) (*facts, error) {
	host, err := s.inventoryHost(ctx, r, id)
	if err != nil {
		return nil, err
	}
	rec, err := optional(Records().Get(ctx, r, id))
	if err != nil {
		return nil, err
	}
	f := s.newFacts(host, rec)
	for _, p := range host.Ports() {
		port, err := optional(ledger.Ports().Get(ctx, r, p.GUID.String()))
		if err != nil {
			return nil, err
		}
		f.ports[p.GUID] = port
	}
	keys, err := rec.keys()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		st, err := gatherGrant(ctx, r, k)
		if err != nil {
			return nil, err
		}
		f.grants[k] = st
	}
	return f, nil
}

func (s *Service) newFacts(h inventory.Host, rec Record) *facts {
	return &facts{
		now: s.now(), evidenceAge: s.o.EvidenceAge, host: h, rec: rec,
		ports: map[ib.GUID]ledger.Port{}, grants: map[ledger.Key]standing{},
	}
}

func gatherGrant(ctx context.Context, r store.Reader, k ledger.Key) (standing, error) {
	g, err := ledger.Grants().Get(ctx, r, k.String())
	if err != nil {
		return standing{}, err
	}
	m, err := optional(ledger.Memberships().Get(ctx, r, k.String()))
	return standing{grant: g.Value, modified: g.Modified, found: m}, err
}

// optional gives the value of a record, zero when there is none.
func optional[T any](rec store.Record[T], err error) (T, error) {
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return rec.Value, err
}

func (s *Service) inventoryHost(ctx context.Context, r store.Reader, id string) (inventory.Host, error) {
	if !inventory.ValidHostID(id) {
		return inventory.Host{}, noHost(id)
	}
	rec, err := inventory.Hosts().Get(ctx, r, id)
	if errors.Is(err, store.ErrNotFound) {
		return inventory.Host{}, noHost(id)
	}
	return rec.Value, err
}

func noHost(id string) *Error {
	return refusal(NotFound, "host_unknown", "list hosts to see their ids, or import the host's inventory", "no host %q in inventory", clip(id))
}

// clip shortens what a caller said before it is repeated.
func clip(s string) string {
	const limit = 64
	if len(s) > limit {
		return s[:limit] + "..."
	}
	return s
}

// gatherAll reads the facts about every host as of one revision, sorted by id.
func (s *Service) gatherAll(ctx context.Context, n store.Snapshot) ([]*facts, error) {
	hosts, _, err := inventory.Hosts().List(ctx, n, "")
	if err != nil {
		return nil, err
	}
	records, err := index(Records().List(ctx, n, ""))
	if err != nil {
		return nil, err
	}
	ports, err := index(ledger.Ports().List(ctx, n, ""))
	if err != nil {
		return nil, err
	}
	grants, err := index(ledger.Grants().List(ctx, n, ""))
	if err != nil {
		return nil, err
	}
	found, err := index(ledger.Memberships().List(ctx, n, ""))
	if err != nil {
		return nil, err
	}
	out := make([]*facts, 0, len(hosts))
	for _, h := range hosts {
		f := s.newFacts(h.Value, records[h.Key].Value)
		for _, p := range h.Value.Ports() {
			f.ports[p.GUID] = ports[p.GUID.String()].Value
		}
		keys, err := f.rec.keys()
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			g := grants[k.String()]
			f.grants[k] = standing{grant: g.Value, modified: g.Modified, found: found[k.String()].Value}
		}
		out = append(out, f)
	}
	return out, nil
}

func index[T any](list []store.Record[T], _ int64, err error) (map[string]store.Record[T], error) {
	m := make(map[string]store.Record[T], len(list))
	for _, r := range list {
		m[r.Key] = r
	}
	return m, err
}
