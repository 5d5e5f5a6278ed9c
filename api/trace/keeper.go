package trace

import (
	"slices"
	"time"

	"portcullis/api/hostrecord"
	"portcullis/api/tracecontext"
	v1 "portcullis/api/v1"
)

// Keeper follows the records of hosts and says which admissions and releases have ended. It keeps one entry for each host that has
// a record. It is not safe for concurrent use.
type Keeper struct {
	hosts map[string]*host
}

// host is what the last record of a host said.
type host struct {
	phase           v1.Phase
	since           time.Time
	epoch           int64
	cluster, tenant string // of the present assignment, or of the last one
	trace           tracecontext.Parent
	open            *hostrecord.Record // of an assignment whose trace has not ended; nil: there is none
	refused         []Refusal          // the first of it
	refusals        int                // all of it that were recorded
}

// Refusal is a refused attestation.
type Refusal struct {
	Time   time.Time
	Code   string // reason of packages attest and attestation
	Proven hostrecord.Proven
}

// NewKeeper returns a Keeper that knows no host.
func NewKeeper() *Keeper { return &Keeper{hosts: map[string]*host{}} }

// Keep forgets hosts that are not among ids, as after the records were read again. at is the time now.
func (k *Keeper) Keep(ids map[string]bool, at time.Time) (ended []Ended) {
	for id := range k.hosts {
		if !ids[id] {
			ended = append(ended, k.Take(id, nil, at)...)
		}
	}
	slices.SortFunc(ended, compareEnded)
	return ended
}

// Take takes the next record of a host; nil: it is gone. at is the time now. It returns what ended by it.
func (k *Keeper) Take(id string, r *hostrecord.Record, at time.Time) (ended []Ended) {
	was := k.hosts[id]
	if r == nil {
		delete(k.hosts, id)
		if was != nil && was.open != nil {
			ended = append(ended, was.end(id, was.open, Removed, at))
		}
		return ended
	}
	now := &host{phase: hostrecord.PhaseOf(*r), since: r.Since, epoch: r.Epoch, cluster: r.Cluster, tenant: r.Tenant, trace: r.Trace}
	k.hosts[id] = now
	if was == nil {
		now.begin(r)
		return nil
	}
	if now.cluster == "" {
		now.cluster, now.tenant = was.cluster, was.tenant
	}
	switch {
	case r.Cluster == "" || r.Epoch != was.epoch:
		if was.open != nil {
			ended = append(ended, was.endBy(id, r, at))
		}
		now.begin(r)
	case was.open == nil: // admitted before, or shut
	case r.Admitted:
		was.note(r)
		ended = append(ended, was.end(id, r, Admitted, r.Since))
	default:
		was.note(r)
		now.open, now.refused, now.refusals = r, was.refused, was.refusals
	}
	if was.phase == v1.PhaseReleasing && now.phase != v1.PhaseReleasing {
		ended = append(ended, Ended{
			Host: id, Outcome: Released, release: true, epoch: was.epoch, cluster: was.cluster, tenant: was.tenant, parent: was.trace,
			start: was.since, end: later(now.since, was.since),
		})
	}
	return ended
}

// begin opens the trace of an assignment that has not ended.
func (h *host) begin(r *hostrecord.Record) {
	if r.Cluster != "" && !r.Admitted && !r.Assigned.IsZero() {
		h.open = r
		h.note(r)
	}
}

// note notes the last refusal of a record, unless it is noted.
func (h *host) note(r *hostrecord.Record) {
	d := r.Denial
	if d == nil || d.Time.Before(r.Assigned) || h.open != nil && h.open != r && h.open.Denial != nil && h.open.Denial.Time.Equal(d.Time) {
		return
	}
	h.refusals++
	if len(h.refused) < MaxRefusals {
		h.refused = append(h.refused[:len(h.refused):len(h.refused)], Refusal{Time: d.Time, Code: d.Code, Proven: r.DenialProof})
	}
}

// endBy returns the end of an assignment that another record took the place of.
func (h *host) endBy(id string, r *hostrecord.Record, at time.Time) Ended {
	if r.Cluster != "" {
		return h.end(id, h.open, Reassigned, later(r.Assigned, h.open.Assigned))
	}
	if r.Since.After(h.open.Assigned) {
		at = r.Since // its phase changed with the release
	}
	return h.end(id, h.open, Released, at)
}

func (h *host) end(id string, r *hostrecord.Record, how Outcome, at time.Time) Ended {
	return Ended{
		Host: id, Outcome: how, epoch: r.Epoch, cluster: r.Cluster, tenant: r.Tenant, parent: r.Trace, record: r,
		start: r.Assigned, end: later(at, r.Assigned), refused: h.refused, refusals: h.refusals,
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Due returns the assignments whose window has closed without evidence, each once.
func (k *Keeper) Due(now time.Time) (ended []Ended) {
	for id, h := range k.hosts {
		if h.open != nil && h.open.Evidence == nil && !now.Before(h.open.Window) {
			ended = append(ended, h.end(id, h.open, Shut, h.open.Window))
			h.open, h.refused, h.refusals = nil, nil, 0
		}
	}
	slices.SortFunc(ended, compareEnded)
	return ended
}
