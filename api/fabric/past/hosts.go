package past

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/fabric/timeline"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
	"portcullis/fabricsm/pause"
)

// hostsRetry is the pause before records are read again.
const hostsRetry = time.Second

// Hosts keeps the phase and the tenant of each host as recorded.
type Hosts struct {
	mu      sync.Mutex
	of      map[string]timeline.Row
	why     string // they are not known; empty: they are
	version uint64 // changes with each change; 0: never
}

// NewHosts returns Hosts that know none.
func NewHosts() *Hosts { return &Hosts{why: "the records of hosts were not read yet", version: 1} }

// Follow takes the records of hosts, now and after each change, until ctx ends.
func (h *Hosts) Follow(ctx context.Context, st *store.Store, log *slog.Logger) {
	for {
		err := h.watch(ctx, st)
		if ctx.Err() != nil {
			h.lost("the records of hosts are not followed any longer")
			return
		}
		h.lost("the store did not show the records of hosts")
		log.Warn("the phases of hosts are not recorded", "error", err, "retry_in", hostsRetry)
		if !pause.For(ctx, hostsRetry) {
			return
		}
	}
}

func (h *Hosts) watch(ctx context.Context, st *store.Store) error {
	return hostrecord.Records().Follow(ctx, st, func(list []store.Record[hostrecord.Record]) {
		all := make(map[string]timeline.Row, len(list))
		for i := range list {
			all[list[i].Key] = hostRow(list[i].Key, &list[i].Value)
		}
		h.change(func() { h.of, h.why = all, "" })
	}, func(ev *store.Event[hostrecord.Record]) {
		h.change(func() {
			if ev.Deleted {
				delete(h.of, ev.Key)
			} else {
				h.of[ev.Key] = hostRow(ev.Key, &ev.Value)
			}
		})
	})
}

func hostRow(id string, r *hostrecord.Record) timeline.Row {
	return row(kindHost, id, string(hostrecord.PhaseOf(*r)), r.Tenant, r.Cluster)
}

func (h *Hosts) lost(why string) { h.change(func() { h.of, h.why = nil, why }) }

func (h *Hosts) change(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	do()
}

// rows returns the rows of hosts, and their version. It makes none where that is the one of before.
func (h *Hosts) rows(before uint64) ([]timeline.Row, uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.version == before {
		return nil, before
	}
	out := make([]timeline.Row, 0, len(h.of)+1)
	for _, r := range h.of {
		out = append(out, r)
	}
	return append(out, row(kindAboutHosts, "hosts", h.why)), h.version
}
