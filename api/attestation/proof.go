package attestation

import (
	"context"
	"time"

	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// Proof is what a host proved last.
type Proof struct {
	Host     string
	Verified time.Time // zero: nothing that still counts
	HCAs     []ProvenHCA
}

// ProvenHCA is an adapter that is in a host, as its evidence says.
type ProvenHCA struct {
	NodeGUID ib.GUID
	PSID     string
}

// Evidence returns the last proof of a host, if that still counts; a zero Proof otherwise. Evidence that inventory
// contradicts is refused when it comes, and void when inventory changes. That of a held host does not count: which host has
// which adapter is in question.
func (s *Service) Evidence(ctx context.Context, host string) (Proof, error) {
	rec, err := store.Optional(hostrecord.Records().Get(ctx, s.o.Store, host))
	if err != nil || rec.Evidence == nil || len(rec.Conflicts) > 0 {
		return Proof{}, refusal.Explain(err)
	}
	v, err := store.Optional(hostrecord.Verdicts().Get(ctx, s.o.Store, host))
	if err != nil {
		return Proof{}, refusal.Explain(err)
	}
	if !v.OK || v.Facts.Host != host || v.Facts.Session != rec.Evidence.Session || v.Facts.Statement == nil {
		return Proof{}, nil
	}
	out := Proof{Host: v.Facts.Host, Verified: v.Facts.Verified}
	for _, a := range v.Facts.Statement.HCAs {
		out.HCAs = append(out.HCAs, ProvenHCA{NodeGUID: a.NodeGUID, PSID: a.PSID})
	}
	return out, nil
}
