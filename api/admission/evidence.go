package admission

import (
	"context"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Evidence is what decisions about hosts ask of what hosts have shown. Package attestation implements it.
type Evidence interface {
	// Trusted judges all sets of reference values that there are, and returns when that changes by itself.
	Trusted(ctx context.Context, r store.Reader) (attestation.Trust, time.Time, error)
	// Stale reports whether evidence was judged by other rules than those in force now.
	Stale(ev *hostrecord.Evidence, refs attestation.Trust) bool
	// RejudgeBy returns the sets that evidence is to be judged by again; nil where it need not be.
	RejudgeBy(ctx context.Context, r store.Reader, ev *hostrecord.Evidence, refs attestation.Trust) (attestation.Trust, error)
	// Rejudge judges the evidence of a host by what is in force now, notes it in rec and records events of what changed.
	// refs nil: the set that it rests on is read in tx.
	Rejudge(ctx context.Context, tx *store.Tx, host string, rec *hostrecord.Record, refs attestation.Trust) error
}

// forAttestation is what attestation asks of admission.
type forAttestation struct{ s *Service }

// Settle implements attestation.Admission.
func (a forAttestation) Settle(ctx context.Context, tx *store.Tx, host string) (v1.Phase, error) {
	_, d, err := a.s.settle(ctx, tx, host)
	return d.phase, err
}

// Look implements attestation.Admission.
func (a forAttestation) Look(ctx context.Context, r store.Reader, host string) (*attestation.View, error) {
	f, err := a.s.gather(ctx, r, host)
	if err != nil {
		return nil, err
	}
	d := decide(f)
	return &attestation.View{
		Now: f.now, Host: &f.host, Record: &f.rec, Phase: d.phase, Shown: hostView(f, d),
		Lacks: checkAttested(f), Held: f.held(), InPartition: f.inPartition(),
	}, nil
}
