package hostca

import (
	"context"
	"crypto/sha256"
	"encoding/pem"
	"time"

	"portcullis/api/admission"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

func sum(b []byte) []byte { s := sha256.Sum256(b); return s[:] }

// Authorities lists those whose certificates count now, the one that signs last among
// those that sign, and the next one if there is one.
func (s *Service) Authorities(ctx context.Context) (*v1.HostAuthorities, error) {
	rec, err := s.read(ctx, s.o.Store)
	if err != nil {
		return nil, explain(err)
	}
	return s.show(&rec), nil
}

func (s *Service) show(rec *record) *v1.HostAuthorities {
	now := s.now()
	out := &v1.HostAuthorities{TrustDomain: s.o.Domain, Life: int(s.o.Life / time.Second), Items: []v1.HostAuthority{}}
	signer := ""
	if i := rec.signer(now); i >= 0 {
		signer = rec.Authorities[i].ID
	}
	for _, a := range rec.trusted(now) {
		state := v1.AuthorityAccepted
		switch {
		case a.ID == signer:
			state = v1.AuthoritySigns
		case a.From.After(now):
			state = v1.AuthorityNext
		}
		out.Items = append(out.Items, v1.HostAuthority{
			ID: a.ID, State: state, From: a.From, Until: a.Until, SHA256: fingerprint(a.Certificate),
			Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate})),
		})
	}
	return out
}

// Rotate makes the next authority. It signs in a day, so that relying parties can learn
// of it, and certificates of those before stay valid. At once: it signs now, and all
// others and their certificates end.
func (s *Service) Rotate(ctx context.Context, actor string, in v1.AuthorityRotation) (*v1.HostAuthorities, error) {
	var rec record
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = s.read(ctx, tx); err != nil {
			return err
		}
		from := s.now()
		switch {
		case in.AtOnce:
			rec.Authorities = nil
		case rec.next(from):
			next := rec.Authorities[len(rec.Authorities)-1]
			return &admission.Error{
				Code: "authority_next", Status: admission.Conflict,
				Detail: "authority " + next.ID + " is the next one already: it signs from " + next.From.Format(time.RFC3339),
				Hint:   "wait until it does; to end all certificates of hosts now, rotate at once",
			}
		case len(rec.Authorities) > 0:
			from = from.Add(ahead)
		}
		return s.add(ctx, tx, &rec, from, actor, in.Reason)
	})
	if err != nil {
		return nil, explain(err)
	}
	return s.show(&rec), nil
}
