package attestation

import (
	"context"
	"fmt"
	"log/slog"

	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// denial is a request to be refused.
type denial struct {
	host     string
	epoch    int64
	source   string
	proven   hostrecord.Proven
	attempt  attest.Reason // what was wrong with the request itself, "" if nothing
	stranger bool          // no such host in inventory
	adapters bool          // a boot that is trusted shows adapters that policy refuses
	audited  bool          // the audit log takes it
}

// noted is the key that limits refusals that any sender can cause: the operator should see each once, not each time. A new
// assignment starts a new key.
type noted struct {
	host    string
	epoch   int64
	attempt attest.Reason
	proven  hostrecord.Proven
}

// lastStranger is the key of the one record in strangers.
const lastStranger = "last"

// strangers holds the last refusal of a host that is not in inventory.
func strangers() store.Collection[v1.Denial] { return store.NewCollection[v1.Denial]("strangers", 1) }

// AuditRate limits entries of the audit log about refused attestations, over all hosts that proved the same. The log is
// never cut, and an entry takes some 700 bytes: this is about 1 MB a day at most.
func AuditRate() limit.Rate { return limit.Rate{PerSecond: 1.0 / 60, Burst: 1024} }

// maxDetail bounds what is kept of a refusal's detail, which may repeat what
// the host said.
const maxDetail = 512

// deny records why evidence was refused, and returns the refusal. If it cannot be recorded, the answer stays the same.
func (s *Service) deny(ctx context.Context, d denial, no *attest.Refusal) error {
	s.refused[d.proven].Add(1)
	no = &attest.Refusal{Code: no.Code, Detail: refusal.ClipTo(no.Detail, maxDetail)}
	level := slog.LevelInfo
	if d.proven != hostrecord.ProvenTPM && !s.lines.Allow(d.proven, s.now()) {
		level = slog.LevelDebug // a journal that is flooded drops lines of other programs
	}
	s.o.Log.Log(ctx, level, "attestation refused", "host", d.host, "code", no.Code, "detail", no.Detail, "source", d.source)
	if !s.worthNoting(d) {
		return no
	}
	d.audited = d.proven != hostrecord.ProvenNothing && s.audits.Allow(d.proven, s.now())
	err := s.update(ctx, func(tx *store.Tx) error { return s.note(ctx, tx, d, no) })
	if err != nil {
		s.o.Log.Error("refused evidence could not be recorded", "host", d.host, "code", no.Code, "err", err)
	}
	return no
}

func (s *Service) worthNoting(d denial) bool {
	now := s.now()
	notes := s.notes
	if d.stranger {
		notes = s.strangerNotes // names that no host has take no place of one that there is
	}
	return d.proven == hostrecord.ProvenTPM ||
		notes.Allow(noted{d.host, d.epoch, d.attempt, d.proven}, now) && s.allNotes.Allow(d.proven, now)
}

// note puts the refusal into the host's status, where it stands for as long as a window lasts if no sender who proved as
// much is refused meanwhile: a stranger hides nothing. It goes into the audit log if the sender knew at least the EK, at
// Options.AuditRate, and always if it ends evidence that was accepted. A host that is not in inventory has no status, but the last
// refusal is kept, which also takes the same time.
func (s *Service) note(ctx context.Context, tx *store.Tx, d denial, no *attest.Refusal) error {
	last := v1.Denial{Time: s.now(), Code: string(no.Code), Detail: no.Detail}
	if d.stranger {
		if _, err := store.Optional(strangers().Get(ctx, tx, lastStranger)); err != nil {
			return err
		}
		return strangers().Put(tx, lastStranger, last)
	}
	rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, d.host))
	if err != nil {
		return err
	}
	if rec.Denial == nil || d.proven >= rec.DenialProof || last.Time.Sub(rec.Denial.Time) >= s.o.Window {
		rec.Denial, rec.DenialProof = &last, d.proven
	}
	if d.proven == hostrecord.ProvenTPM { // only the host itself can do that to it
		rec.Certificate = nil
	}
	// Evidence accepted before, of adapters that are not so any more, admits no host.
	spent := d.adapters && rec.Epoch == d.epoch && rec.Evidence != nil && !rec.Admitted
	detail := fmt.Sprintf("%s (from %s)", no.Detail, refusal.Clip(d.source))
	if spent {
		detail += "; evidence of session " + rec.Evidence.Session + " counts no more"
		rec.Unseal(tx)
		if err := DropEvidence(ctx, tx, s.now(), d.host, &rec); err != nil {
			return err
		}
	}
	if err := hostrecord.Records().Put(tx, d.host, rec); err != nil || !d.audited && !spent {
		return err
	}
	actor := "source:" + refusal.Clip(d.source)
	if d.proven == hostrecord.ProvenTPM {
		actor = "agent:" + d.host
	}
	if err := s.log(ctx, tx, &audit.Change{
		Actor: actor, Action: "evidence.refuse", Object: "host/" + d.host, Code: string(no.Code), Detail: detail,
	}); err != nil || !spent {
		return err
	}
	_, err = s.o.Admission.Settle(ctx, tx, d.host)
	return err
}
