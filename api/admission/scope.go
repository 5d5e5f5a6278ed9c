package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Scope is the ranges of P_Keys that a credential may have to do with. One with a
// scope gets P_Keys out of it alone, may name them, and changes no cluster whose
// P_Key lies elsewhere. One without, nil, has to do with all clusters, and names no
// P_Key: the service alone chooses.
type Scope []ib.PKeyRange

type scopeKey struct{}

// Within gives a context for what a credential with a scope asks for.
func Within(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

func scopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}

func (s Scope) contains(k ib.PKey) bool {
	return slices.ContainsFunc(s, func(r ib.PKeyRange) bool { return r.Contains(k) })
}

// String lists the ranges.
func (s Scope) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = r.String()
	}
	return strings.Join(parts, ", ")
}

// Codes of refusals that the audit log has.
const (
	codeOutOfScope  = "p_key_out_of_scope" // because of a Scope
	codeInUse       = "cluster_in_use"
	codeFullRefused = "full_membership_refused"
	codeReserved    = "p_key_reserved"
)

// inScope refuses a cluster that the credential has nothing to do with.
func inScope(ctx context.Context, c *Cluster) error {
	if s := scopeOf(ctx); s != nil && !s.contains(c.PKey) {
		return refusal(Refused, codeOutOfScope, "use a credential for that cluster",
			"cluster %s has P_Key %v, and this credential only those of %v", c.Name, c.PKey, s)
	}
	return nil
}

// mayName refuses a P_Key that a caller has named and may not.
func (s *Service) mayName(ctx context.Context, k ib.PKey) error {
	scope := scopeOf(ctx)
	switch {
	case !k.Valid() || k.Base() == ib.DefaultPKeyLimited:
		return refusal(Invalid, codeReserved, "leave it out, and the service chooses one", "P_Key %v is reserved", k)
	case scope == nil:
		return refusal(Refused, codeOutOfScope, "leave it out, and the service chooses one; or give the credential p_keys",
			"P_Key %v is named, and this credential has no range of them", k)
	case !scope.contains(k):
		return refusal(Refused, codeOutOfScope, "name one of these, or none",
			"P_Key %v is named, and this credential has only those of %v", k, scope)
	case k.Base() < s.o.PKeyFirst.Base() || k.Base() > s.o.PKeyLast.Base() || slices.Contains(s.o.PKeyReserved, k.Base()):
		return refusal(Invalid, codeReserved, "name another one, or none", "P_Key %v is not one that this service gives out", k)
	default:
		return nil
	}
}

// noteRefusal puts a refusal into the audit log that means somebody reached for what
// is not his, one of a kind a minute, and gives it back.
func (s *Service) noteRefusal(ctx context.Context, c change, err error) error {
	var no *Error
	if !errors.As(err, &no) || !slices.Contains([]string{codeOutOfScope, codeInUse, codeFullRefused, codeReserved}, no.Code) {
		return err
	}
	s.o.Log.Warn("refused", "actor", c.actor, "action", c.action, "object", c.object, "code", no.Code, "detail", no.Detail)
	now := s.now()
	kind := noted{host: "credential:" + c.actor, attempt: attest.Reason(no.Code + c.object)}
	if !s.notes.Allow(kind, now) || !s.allNotes.Allow(credential, now) {
		return err
	}
	c.code, c.detail = no.Code, clipTo(no.Detail, maxDetail)
	if failed := s.update(ctx, func(tx *store.Tx) error { return s.log(ctx, tx, c) }); failed != nil {
		s.o.Log.Error("a refusal could not be recorded", "actor", c.actor, "action", c.action, "err", failed)
	}
	return err
}

// chooseNamed is choosePKey for a P_Key that was named.
func (s *Service) chooseNamed(k ib.PKey, known map[string]store.Record[PKeyRecord]) error {
	r, used := known[k.Base().String()]
	if !used {
		return nil
	}
	switch age := s.now().Sub(r.Value.Since); {
	case r.Value.State == PKeyUsed:
		return refusal(Conflict, "p_key_used", "name another one, or none", "P_Key %v belongs to a cluster", k)
	case r.Value.State != PKeyAbsent:
		return refusal(Conflict, "p_key_quarantined", "see the quarantined P_Keys for what it waits for",
			"P_Key %v is quarantined: it was that of a cluster which is deleted, and is not proven absent", k)
	case age < s.o.PKeyMinAge:
		return refusal(Conflict, "p_key_quarantined", "ask again then",
			"P_Key %v rests for another %v", k, (s.o.PKeyMinAge - age).Round(1e9))
	default:
		return nil
	}
}

// clusterObject is how the audit log names a cluster that may not exist.
func clusterObject(n *v1.NewCluster) string { return fmt.Sprintf("cluster/%s", clip(n.Name)) }
