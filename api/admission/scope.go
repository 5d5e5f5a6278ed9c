package admission

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Scope is what a credential may have to do with. One with a scope gets P_Keys out of its ranges alone, may name
// them, changes no cluster whose P_Key lies elsewhere, makes clusters for tenants of its ranges only, and takes no host
// but its own. One without, nil, has to do with everything, and names no P_Key: the service alone chooses.
type Scope struct {
	PKeys Ranges
	Hosts []string // patterns of host ids as path.Match reads them; none: no host that is in no cluster of the scope
}

// Ranges are ranges of P_Keys.
type Ranges []ib.PKeyRange

type scopeKey struct{}

// Within returns a context for what a credential with a scope asks for.
func Within(ctx context.Context, s *Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

func scopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

func (r Ranges) contains(k ib.PKey) bool {
	return slices.ContainsFunc(r, func(r ib.PKeyRange) bool { return r.Contains(k) })
}

// cover reports whether every P_Key of others lies in r. No range at all is not covered.
func (r Ranges) cover(others Ranges) bool {
	return len(others) > 0 && !slices.ContainsFunc(others, func(o ib.PKeyRange) bool { return !r.coverOne(o) })
}

func (r Ranges) coverOne(o ib.PKeyRange) bool {
	for next := o.First; next <= o.Last; {
		i := slices.IndexFunc(r, func(r ib.PKeyRange) bool { return r.Contains(next) })
		if i < 0 {
			return false
		}
		next = r[i].Last + 1
	}
	return true
}

// String lists the ranges.
func (r Ranges) String() string { return strings.Join(r.texts(), ", ") }

func (r Ranges) texts() []string {
	parts := make([]string, len(r))
	for i, one := range r {
		parts[i] = one.String()
	}
	return parts
}

// parseRanges reads what texts wrote.
func parseRanges(texts []string) (Ranges, error) {
	var out Ranges
	for _, text := range texts {
		r, err := ib.ParsePKeyRange(text)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// takes reports whether a pattern of the scope has a host.
func (s *Scope) takes(host string) bool {
	return slices.ContainsFunc(s.Hosts, func(pattern string) bool {
		is, err := path.Match(pattern, host)
		return err == nil && is
	})
}

// Codes of refusals that the audit log has.
const (
	codeOutOfScope  = "p_key_out_of_scope"  // because of a Scope
	codeTenantScope = "tenant_out_of_scope" // the same
	codeHostScope   = "host_out_of_scope"   // the same
	codeInUse       = "cluster_in_use"
	codeFullRefused = "full_membership_refused"
	codeReserved    = "p_key_reserved"
)

// inScope refuses a cluster that the credential has nothing to do with.
func inScope(ctx context.Context, c *Cluster) error {
	if s := scopeOf(ctx); s != nil && !s.PKeys.contains(c.PKey) {
		return refusal.New(refusal.Refused, codeOutOfScope, "use a credential for that cluster",
			"cluster %s has P_Key %v, and this credential only those of %v", c.Name, c.PKey, s.PKeys)
	}
	return nil
}

// tenantInScope refuses a tenant that the credential has nothing to do with. A tenant is in the scope if its own ranges
// are; without ranges, if it has clusters and the P_Keys of all of them are.
func (s *Service) tenantInScope(ctx context.Context, r store.Reader, t *Tenant) error {
	scope := scopeOf(ctx)
	if scope == nil {
		return nil
	}
	own, err := parseRanges(t.PKeys)
	if err != nil {
		return fmt.Errorf("tenant %s: %w", t.Name, err)
	}
	if scope.PKeys.cover(own) {
		return nil
	}
	has := "no range of P_Keys"
	switch {
	case len(own) > 0:
		has = "the P_Keys of " + own.String()
	case len(t.Clusters) > 0:
		for _, name := range t.Clusters {
			c, err := s.cluster(ctx, r, name)
			if err != nil {
				return err
			}
			if !scope.PKeys.contains(c.PKey) {
				return refusal.New(refusal.Refused, codeTenantScope, "use a credential for all of that tenant's clusters",
					"tenant %s has cluster %s with P_Key %v, and this credential only those of %v", t.Name, c.Name, c.PKey, scope.PKeys)
			}
		}
		return nil
	}
	return refusal.New(refusal.Refused, codeTenantScope, "use a tenant that this credential created, or that was created with p_keys out of its ranges",
		"tenant %s has %s, and this credential those of %v", t.Name, has, scope.PKeys)
}

// hostInScope refuses a host that the credential may not take. One that is in a cluster of the scope is its own already.
func hostInScope(ctx context.Context, f *facts) error {
	s := scopeOf(ctx)
	if s == nil || s.takes(f.host.ID) || f.rec.Cluster != "" && s.PKeys.contains(f.rec.PKey) {
		return nil
	}
	may := "none"
	if len(s.Hosts) > 0 {
		may = strings.Join(s.Hosts, ", ")
	}
	return refusal.New(refusal.Refused, codeHostScope, "name the host, or a pattern that it matches, at hosts of the credential in the file of tokens",
		"host %s is not one that this credential may take: it may take %s", f.host.ID, may)
}

// mayName refuses a P_Key that a caller has named and may not.
func (s *Service) mayName(ctx context.Context, k ib.PKey) error {
	scope := scopeOf(ctx)
	switch {
	case !k.Valid() || k.Base() == ib.DefaultPKeyLimited:
		return refusal.New(refusal.Invalid, codeReserved, "leave it out, and the service chooses one", "P_Key %v is reserved", k)
	case scope == nil:
		return refusal.New(refusal.Refused, codeOutOfScope, "leave it out, and the service chooses one; or give the credential p_keys",
			"P_Key %v is named, and this credential has no range of them", k)
	case !scope.PKeys.contains(k):
		return refusal.New(refusal.Refused, codeOutOfScope, "name one of these, or none",
			"P_Key %v is named, and this credential has only those of %v", k, scope.PKeys)
	case k.Base() < s.o.PKeyFirst.Base() || k.Base() > s.o.PKeyLast.Base() || slices.Contains(s.o.PKeyReserved, k.Base()):
		return refusal.New(refusal.Invalid, codeReserved, "name another one, or none", "P_Key %v is not one that this service gives out", k)
	default:
		return nil
	}
}

// reach is the key by which refusals of credentials are limited. Hosts and strangers have limits of
// their own, so that they keep no refusal of a credential out of the audit log.
type reach struct{ actor, code, object string }

// noteRefusal puts a refusal into the audit log that means an actor tried to use another's object, one of a kind a minute,
// and returns it.
func (s *Service) noteRefusal(ctx context.Context, c change, err error) error {
	var no *refusal.Error
	if !errors.As(err, &no) || !slices.Contains([]string{codeOutOfScope, codeTenantScope, codeHostScope, codeInUse, codeFullRefused, codeReserved}, no.Code) {
		return err
	}
	s.o.Log.Warn("refused", "actor", c.actor, "action", c.action, "object", c.object, "code", no.Code, "detail", no.Detail)
	now := s.now()
	if !s.reaches.Allow(reach{c.actor, no.Code, c.object}, now) || !s.allNotes.Allow(credential, now) {
		return err
	}
	c.code, c.detail = no.Code, refusal.ClipTo(no.Detail, maxDetail)
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
		return refusal.New(refusal.Conflict, "p_key_used", "name another one, or none", "P_Key %v belongs to a cluster", k)
	case r.Value.State != PKeyAbsent:
		return refusal.New(refusal.Conflict, "p_key_quarantined", "see the quarantined P_Keys for what it waits for",
			"P_Key %v is quarantined: it was that of a cluster which is deleted, and is not proven absent", k)
	case age < s.o.PKeyMinAge:
		return refusal.New(refusal.Conflict, "p_key_quarantined", "ask again then",
			"P_Key %v rests for another %v", k, (s.o.PKeyMinAge - age).Round(1e9))
	default:
		return nil
	}
}

// clusterObject is how the audit log names a cluster that may not exist.
func clusterObject(n *v1.NewCluster) string { return fmt.Sprintf("cluster/%s", refusal.Clip(n.Name)) }
