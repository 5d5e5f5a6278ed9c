package posture

import (
	"context"
	"fmt"
	"time"

	"portcullis/api/adoptions"
	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/audit/anchor"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/profile"
	"portcullis/api/rehearsal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// hosts collects what the evidence of admitted hosts showed.
func hosts(ctx context.Context, r store.Snapshot, f *profile.Facts) error {
	valid, err := inForce(ctx, r, f.At)
	if err != nil {
		return err
	}
	hosts, _, err := hostrecord.Records().List(ctx, r, "")
	if err != nil {
		return err
	}
	verdicts, _, err := hostrecord.Verdicts().List(ctx, r, "")
	if err != nil {
		return err
	}
	of := make(map[string]*attest.Verdict, len(verdicts))
	for i := range verdicts {
		of[verdicts[i].Key] = &verdicts[i].Value
	}
	known := adapters{oldest: f.At}
	booted := profile.Attested{Sets: len(valid)}
	for i := range hosts {
		rec := &hosts[i].Value
		if rec.Phase != v1.PhaseAdmitted {
			continue
		}
		booted.Hosts.Of++
		if e := rec.Evidence; e != nil && valid[e.Reference] && len(e.Lapses) == 0 {
			booted.Hosts.Good++
		}
		known.add(of[hosts[i].Key])
	}
	f.Attested = now(f, booted, "records of admitted hosts, and sets of reference values")
	if err := adopted(ctx, r, f); err != nil {
		return err
	}
	f.SignedFirmware, f.SMPFirewall = known.seen(&known.signed), known.seen(&known.locked)
	return nil
}

// adopted counts the memberships that are kept without proof, also those of which it is not yet proven that they are gone.
func adopted(ctx context.Context, r store.Snapshot, f *profile.Facts) error {
	members, _, err := records.Adoptions().List(ctx, r, "")
	if err != nil {
		return err
	}
	keys := make([]string, len(members))
	for i := range members {
		keys[i] = members[i].Key
	}
	grants, err := records.Grants().Of(ctx, r, keys)
	if err != nil {
		return err
	}
	ends, _, err := adoptions.Records().List(ctx, r, "")
	if err != nil {
		return err
	}
	var out profile.Adopted
	until := make(map[string]time.Time, len(ends))
	for i := range ends {
		until[ends[i].Key] = ends[i].Value.Deadline
	}
	for i := range grants {
		if id := grants[i].Value.Adopted; id != "" {
			out.Members++
			if until[id].After(out.Deadline) {
				out.Deadline = until[id]
			}
		}
	}
	f.Adopted = now(f, out, "records of adopted memberships")
	return nil
}

// inForce returns the names of the sets of reference values that are in force at a time. Waivers have no values.
func inForce(ctx context.Context, r store.Reader, at time.Time) (map[string]bool, error) {
	sets, _, err := attestation.References().List(ctx, r, "")
	if err != nil {
		return nil, err
	}
	valid := map[string]bool{}
	for i := range sets {
		if s := &sets[i].Value; s.Valid(at) && !s.Waiver && s.Check() == nil {
			valid[s.Name()] = true
		}
	}
	return valid, nil
}

// adapters counts the adapters of admitted hosts by what their evidence showed.
type adapters struct {
	signed, locked profile.Count
	without        int       // hosts without a statement about adapters
	oldest         time.Time // when the oldest evidence was accepted
}

func (a *adapters) add(v *attest.Verdict) {
	if v == nil || !v.OK || v.Facts.Statement == nil || len(v.Facts.Statement.HCAs) == 0 {
		a.without++
		return
	}
	if v.Facts.Verified.Before(a.oldest) {
		a.oldest = v.Facts.Verified
	}
	for i := range v.Facts.Statement.HCAs {
		h := &v.Facts.Statement.HCAs[i]
		a.signed.Of++
		a.locked.Of++
		if h.IsAssured(attest.G1) {
			a.signed.Good++
		}
		if h.IsLocked() {
			a.locked.Good++
		}
	}
}

// seen returns a count. A bad adapter decides; a host without a statement leaves open what the rest is.
func (a *adapters) seen(c *profile.Count) profile.Seen[profile.Count] {
	out := profile.Seen[profile.Count]{Value: *c, Source: "evidence of admitted hosts, the oldest of that time", At: a.oldest}
	if a.without > 0 && c.Good == c.Of {
		out.Missing = fmt.Sprintf("of %d admitted hosts there is no evidence about adapters", a.without)
	}
	return out
}

// journal is the anchor that is the service's own log.
const journal = "journal"

// anchors collects which anchors have the head of the audit log.
func (c *Collector) anchors(ctx context.Context, r store.Snapshot, f *profile.Facts) error {
	head, err := audit.Latest(ctx, r)
	if err != nil {
		return err
	}
	f.Anchors = anchored(f.At, head.Seq, c.o.Anchors(), c.o.Every)
	return nil
}

// rehearsed reads when an escrow kit was opened last, at the latest: when the list was made that it was compared with.
func rehearsed(ctx context.Context, r store.Snapshot, f *profile.Facts) error {
	last, err := rehearsal.Last(ctx, r)
	f.Rehearsed = now(f, last.Listed, "the last proof of a rehearsal that was recorded")
	return err
}

// anchored returns what anchors have of an audit log with a head. The log of the service is not outside of it, and does not count.
func anchored(at time.Time, head uint64, states []anchor.State, every time.Duration) profile.Seen[profile.Anchors] {
	out := profile.Seen[profile.Anchors]{Value: profile.Anchors{Confirmed: at}, Source: "audit.anchors of the configuration, and what was written to them since the start", At: at}
	for i := range states {
		s := &states[i]
		if s.Name == journal {
			continue
		}
		out.Value.Configured++
		had := at
		switch {
		case s.Seq == 0:
			out.Missing = fmt.Sprintf("nothing was written to the anchor %s since the start of the service", s.Name)
			if s.Err != nil {
				out.Missing += ": " + s.Err.Error()
			}
		case !s.Since.IsZero():
			had = s.Since
		case s.Seq != head:
			had = at.Add(-every) // the next look finds what is missing
		}
		if had.Before(out.Value.Confirmed) {
			out.Value.Confirmed = had
		}
	}
	return out
}
