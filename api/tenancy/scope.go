package tenancy

import (
	"context"
	"path"
	"slices"
	"strings"

	"portcullis/api/refusal"
	"portcullis/fabricsm/ib"
)

// Scope is what a credential may have to do with. One with a scope gets P_Keys out of its ranges alone, may name
// them, changes no cluster whose P_Key lies elsewhere, makes clusters for tenants of its ranges only, and takes no host
// but its own. One with tenants has to do with what these have, and everything else does not exist for it; it names no P_Key.
// One without, nil, has to do with everything, and names no P_Key: the service alone chooses.
type Scope struct {
	PKeys   Ranges
	Hosts   []string // patterns of host ids as path.Match reads them; none: no host that is in no cluster of the scope
	Tenants []string // nil: of all tenants; there are no PKeys and Hosts then
	Adopted bool     // it may have a cluster get a P_Key that is adopted: hosts of which nothing is proven are in the partition
}

// confined reports whether the credential has to do with some tenants alone.
func (s *Scope) confined() bool { return s != nil && s.Tenants != nil }

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

// CheckCluster refuses a cluster that the credential has nothing to do with.
func CheckCluster(ctx context.Context, c *Cluster) error {
	s := scopeOf(ctx)
	if s.confined() {
		if !slices.Contains(s.Tenants, c.Tenant) {
			return noCluster(c.Name)
		}
		return nil
	}
	if s != nil && !s.PKeys.contains(c.PKey) {
		return refusal.New(refusal.Refused, codeOutOfScope, "use a credential for that cluster",
			"cluster %s has P_Key %v, and this credential only those of %v", c.Name, c.PKey, s.PKeys)
	}
	return nil
}

// CheckHost refuses a host that the credential may not take. One that is in a cluster of the scope is its own already:
// cluster and key are those of the host, "" and 0 where it is in none.
func CheckHost(ctx context.Context, id, cluster string, key ib.PKey) error {
	s := scopeOf(ctx)
	if s == nil || s.takes(id) || cluster != "" && s.PKeys.contains(key) {
		return nil
	}
	may := "none"
	if len(s.Hosts) > 0 {
		may = strings.Join(s.Hosts, ", ")
	}
	return refusal.New(refusal.Refused, codeHostScope, "name the host, or a pattern that it matches, at hosts of the credential in the file of tokens",
		"host %s is not one that this credential may take: it may take %s", id, may)
}
