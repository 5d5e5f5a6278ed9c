package attestation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// HostStatusByToken returns the host whose latest accepted evidence earned the token. The host's record says which token
// counts: the token itself only says which record to read. It ends with that evidence and with the assignment, by a newer
// token, and when the EK is denied. A host that is held, or whose evidence is too old, still gets its status.
func (s *Service) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	ref, err := hostrecord.Tokens().Get(ctx, snap, hashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknownToken()
	}
	if err != nil {
		return nil, refusal.Explain(err)
	}
	f, err := s.o.Admission.Look(ctx, snap, ref.Value.Host)
	if refusal.IsKind(err, refusal.NotFound) || errors.Is(err, store.ErrNotFound) {
		return nil, unknownToken()
	}
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if !f.Record.Earned(hashToken(token)) || s.o.Policy.Denied[strings.ToLower(f.Host.EK)] {
		return nil, unknownToken()
	}
	return f.Shown, nil
}

func unknownToken() *refusal.Error {
	return refusal.New(refusal.Refused, "token_unknown", "attest again to get a new one", "status token is not known, does not count any more, or was replaced by a newer one")
}

const tokenSize = 32 // bytes of randomness

func (s *Service) newToken() (string, error) {
	b := make([]byte, tokenSize)
	if _, err := io.ReadFull(s.o.Rand, b); err != nil {
		return "", &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: "no randomness for a status token", Err: err}
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
