// Package ifmatch carries the versions that a request names in the header If-Match (RFC 9110, section 13.1.1) from the
// protocol to the service, and refuses an object that has none of them.
package ifmatch

import (
	"context"
	"slices"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

type key struct{}

// With returns a context for a request that is to be carried out only on an object of one of versions. An empty list
// matches nothing. A context without it matches any version.
func With(ctx context.Context, versions []string) context.Context {
	return context.WithValue(ctx, key{}, versions)
}

// Matches reports whether a request in ctx may be carried out on an object of this version.
func Matches(ctx context.Context, version string) bool {
	versions, named := ctx.Value(key{}).([]string)
	return !named || slices.Contains(versions, version)
}

// Check refuses an object that is not of a version that the caller names. kind and name are for the error, and is says
// how the object stands now.
func Check(ctx context.Context, kind, name, version, is string) error {
	if Matches(ctx, version) {
		return nil
	}
	return refusal.New(refusal.Changed, v1.CodeChanged, "look at it again, then decide",
		"%s %s is not as the request has it in If-Match: %s; nothing was done", kind, name, is)
}
