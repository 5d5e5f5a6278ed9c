package hostrecord

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/ifmatch"
	"portcullis/api/lifecycle"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// PhaseOf returns the recorded phase; a host without a record is quarantined.
func PhaseOf(r Record) v1.Phase {
	if r.Phase == "" {
		return v1.PhaseQuarantined
	}
	return r.Phase
}

// Life returns the facts that the record has of a host in inventory. Those of grants are as they were last recorded.
func (r *Record) Life(now time.Time) lifecycle.Facts {
	return lifecycle.Facts{
		Known: true, Before: r.Epoch > 0, Assigned: r.Cluster != "", Window: now.Before(r.Window),
		Evidence: r.Evidence != nil, Sealed: !r.Sealed.IsZero(), Granted: r.Granted, Admitted: r.Admitted,
		Left: PhaseOf(*r) == v1.PhaseReleasing, Traces: len(r.Grants) > 0, Held: len(r.Conflicts) > 0,
	}
}

// WindowClosed says why the host may not attest now, "" if it may.
func (r *Record) WindowClosed(now time.Time) string {
	life := r.Life(now)
	switch lifecycle.Refuses(&life, lifecycle.Asked{Command: lifecycle.Attest}) {
	case lifecycle.GuardAssigned:
		return "the host is not assigned to a cluster: assign it to open a provisioning window"
	case lifecycle.GuardNotAdmitted:
		return "the host was admitted, which closed its provisioning window: release it and assign it again"
	case lifecycle.GuardWindow:
		return fmt.Sprintf("the provisioning window closed at %s: assign the host again to open one", r.Window.Format(time.RFC3339))
	default:
		return ""
	}
}

// DropToken ends the token that the host has.
func (r *Record) DropToken(tx *store.Tx) {
	if r.Token != "" {
		Tokens().Delete(tx, r.Token)
	}
	r.Token = ""
}

// Unseal forgets that the host was handed over, and a seal that is awaited: new evidence comes, or the old counts no more.
func (r *Record) Unseal(tx *store.Tx) {
	r.Sealed, r.Certificate = time.Time{}, nil
	if r.Evidence != nil {
		Seals().Delete(tx, r.Evidence.Session)
		Unsealed().Delete(tx, r.Evidence.Session)
	}
}

// Earned reports whether the evidence that counts earned a token, given as its hash.
func (r *Record) Earned(hash string) bool {
	return r.Token != "" && r.Token == hash && r.Cluster != "" && r.Evidence != nil
}

// Holds reports whether the host holds a certificate now.
func (r *Record) Holds(digest string, now time.Time) bool {
	c := r.Certificate
	return c != nil && c.SHA256 == digest && now.Before(c.Until) &&
		r.Cluster != "" && c.Epoch == r.Epoch && r.Evidence != nil && c.Session == r.Evidence.Session &&
		!r.Sealed.IsZero() && len(r.Conflicts) == 0
}

// Lapse returns the lapse of a cause; nil: there is none.
func (e *Evidence) Lapse(cause string) *Lapse {
	i := slices.IndexFunc(e.Lapses, func(l Lapse) bool { return l.Cause == cause })
	if i < 0 {
		return nil
	}
	return &e.Lapses[i]
}

// Fact says what a conflict is.
func (c *Dispute) Fact() string {
	return fmt.Sprintf("GUID %v is claimed by host %s too, since %s", c.GUID, c.With, c.Time.Format(time.RFC3339))
}

// Remedy says what to do about a conflict of a host.
func (*Dispute) Remedy(host string) string {
	return "find out which of them has the adapter, correct cable or inventory, then: portcullis host guid-resolved " + host + " --reason TEXT"
}

// Explain says what a conflict of a host is, and what to do about it.
func (c *Dispute) Explain(host string) string { return c.Fact() + ": " + c.Remedy(host) }

// SameTenancy refuses a host whose last assignment is not the one that the caller names.
func (r *Record) SameTenancy(ctx context.Context, host string) error {
	is := "it was never assigned"
	switch {
	case r.Cluster != "":
		is = "assignment " + version(r.Epoch) + " holds now, to cluster " + r.Cluster
	case r.Epoch > 0:
		is = "its last assignment was " + version(r.Epoch) + ", which ended"
	}
	return ifmatch.Check(ctx, "host", host, version(r.Epoch), is)
}

func version(n int64) string { return strconv.FormatInt(n, 10) }

// Keys parses the record's grants. A key this service cannot read is an error,
// not an absence.
func (r *Record) Keys() ([]records.Key, error) {
	out := make([]records.Key, 0, len(r.Grants))
	for _, g := range r.Grants {
		k, err := records.ParseKey(g)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}
