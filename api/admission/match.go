package admission

import (
	"context"
	"slices"
	"strconv"

	v1 "portcullis/api/v1"

	"portcullis/api/refusal"
)

type matchKey struct{}

// IfMatch returns a context for a request that is to be carried out only on an object of one of versions, as the
// header If-Match has it (RFC 9110, section 13.1.1). An empty list matches nothing. A context without it matches any
// version.
func IfMatch(ctx context.Context, versions []string) context.Context {
	return context.WithValue(ctx, matchKey{}, versions)
}

// Matches reports whether a request in ctx may be carried out on an object of this version.
func Matches(ctx context.Context, version string) bool {
	versions, named := ctx.Value(matchKey{}).([]string)
	return !named || slices.Contains(versions, version)
}

// unchanged refuses an object that is not of a version that the caller names. kind and name are for the error, and is
// says how the object stands now.
func unchanged(ctx context.Context, kind, name, version, is string) error {
	if Matches(ctx, version) {
		return nil
	}
	return refusal.New(refusal.Changed, v1.CodeChanged, "look at it again, then decide",
		"%s %s is not as the request has it in If-Match: %s; nothing was done", kind, name, is)
}

// sameTenancy refuses a host whose last assignment is not the one that the caller names.
func sameTenancy(ctx context.Context, f *facts) error {
	is := "it was never assigned"
	switch {
	case f.rec.Cluster != "":
		is = "assignment " + version(f.rec.Epoch) + " holds now, to cluster " + f.rec.Cluster
	case f.rec.Epoch > 0:
		is = "its last assignment was " + version(f.rec.Epoch) + ", which ended"
	}
	return unchanged(ctx, "host", f.host.ID, version(f.rec.Epoch), is)
}

func version(n int64) string { return strconv.FormatInt(n, 10) }

// version names this cluster, and no later one that has the same name.
func (c *Cluster) version() string { return strconv.FormatInt(c.Created.UnixNano(), 36) }

// version names this tenant, and no later one that has the same name.
func (t *Tenant) version() string { return strconv.FormatInt(t.Created.UnixNano(), 36) }

func (c *Cluster) same(ctx context.Context) error {
	return unchanged(ctx, "cluster", c.Name, c.version(), "it was made anew since, and has P_Key "+c.PKey.String())
}

func (t *Tenant) same(ctx context.Context) error {
	return unchanged(ctx, "tenant", t.Name, t.version(), "it was made anew since")
}
