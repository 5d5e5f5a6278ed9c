package admission

import (
	"context"
	"strconv"

	"portcullis/api/ifmatch"
)

// sameTenancy refuses a host whose last assignment is not the one that the caller names.
func sameTenancy(ctx context.Context, f *facts) error {
	is := "it was never assigned"
	switch {
	case f.rec.Cluster != "":
		is = "assignment " + version(f.rec.Epoch) + " holds now, to cluster " + f.rec.Cluster
	case f.rec.Epoch > 0:
		is = "its last assignment was " + version(f.rec.Epoch) + ", which ended"
	}
	return ifmatch.Check(ctx, "host", f.host.ID, version(f.rec.Epoch), is)
}

func version(n int64) string { return strconv.FormatInt(n, 10) }
