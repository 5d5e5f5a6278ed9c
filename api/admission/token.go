package admission

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// HostStatusByToken gives the host whose latest accepted evidence earned the
// token.
func (s *Service) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	ref, err := tokens().Get(ctx, s.o.Store, hashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknownToken()
	}
	if err != nil {
		return nil, explain(err)
	}
	return s.Host(ctx, ref.Value.Host)
}

func unknownToken() *Error {
	return refusal(Refused, "token_unknown", "attest again to get a new one", "status token is not known, or was replaced by a newer one")
}

const tokenSize = 32 // bytes of randomness

func (s *Service) newToken() (string, error) {
	b := make([]byte, tokenSize)
	if _, err := io.ReadFull(s.o.Rand, b); err != nil {
		return "", &Error{Code: "internal", Status: Internal, Detail: "no randomness for a status token", Err: err}
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
