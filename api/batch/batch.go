// Package batch does the same to each of several hosts of one request. It grants nothing by itself: each host is handled by the service
// that handles a request about it alone, with all guards of that.
package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"portcullis/api/ifmatch"
	"portcullis/api/problem"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// AtOnce is how many hosts of a batch are handled at the same time.
const AtOnce = 8

// Host is a host of a batch.
type Host struct {
	ID string
	// Version is the only version of the host that is changed, "": any.
	Version string
}

// ToAssign returns the hosts that a batch assigns.
func ToAssign(in *v1.AssignBatch) []Host {
	hosts := make([]Host, len(in.Hosts))
	for i, h := range in.Hosts {
		hosts[i].ID = h.ID
		if h.Epoch != nil {
			hosts[i].Version = strconv.FormatInt(*h.Epoch, 10)
		}
	}
	return hosts
}

// ToRelease returns the hosts that a batch releases.
func ToRelease(in *v1.ReleaseBatch) []Host {
	hosts := make([]Host, len(in.Hosts))
	for i, h := range in.Hosts {
		hosts[i] = Host{h.ID, strconv.FormatInt(h.Epoch, 10)}
	}
	return hosts
}

// Check refuses a batch that names a host twice. The bounds of its length are those of the document.
func Check(hosts []Host) error {
	ids := make([]string, len(hosts))
	for i, h := range hosts {
		ids[i] = h.ID
	}
	slices.Sort(ids)
	var twice []string
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			twice = append(twice, ids[i])
		}
	}
	if twice = slices.Compact(twice); len(twice) > 0 {
		return refusal.New(refusal.Invalid, "host_twice", "name each host once", "the batch names hosts more than once: %s; nothing was done", refusal.Some(twice))
	}
	return nil
}

// Do calls do for each host, with the version of the host as that of If-Match, and returns what became of them. After ctx has ended it
// begins no more. faults are errors that are not meant for the caller.
func Do(ctx context.Context, hosts []Host, do func(ctx context.Context, id string) (*v1.Host, error)) (out *v1.Batch, faults []error) {
	changed, errs := make([]*v1.Host, len(hosts)), make([]error, len(hosts))
	var group errgroup.Group
	group.SetLimit(AtOnce)
	for i, h := range hosts {
		group.Go(func() error {
			if ctx.Err() != nil {
				errs[i] = refusal.New(refusal.Unavailable, "not_begun", "send it again", "the request ended before the turn of host %s came; it was not changed", refusal.Clip(h.ID))
				return nil
			}
			one := ctx
			if h.Version != "" {
				one = ifmatch.With(ctx, []string{h.Version})
			}
			changed[i], errs[i] = do(one, h.ID)
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	out = &v1.Batch{Changed: []v1.BatchedHost{}, Refused: []v1.RefusedHost{}}
	for i, h := range hosts {
		if errs[i] == nil {
			out.Changed = append(out.Changed, v1.BatchedHost{ID: h.ID, Epoch: changed[i].Epoch})
			continue
		}
		p, fault := problem.Of(errs[i])
		if fault != nil {
			faults = append(faults, fmt.Errorf("host %s: %w", refusal.Clip(h.ID), fault))
		}
		out.Refused = append(out.Refused, v1.RefusedHost{ID: h.ID, Status: p.Status, Code: p.Code, Detail: p.Detail, Hint: p.Hint})
	}
	return out, faults
}

// Confirmed refuses a release of several hosts whose number the caller did not confirm, and says what it would take away. host and cluster
// look at one; what the caller may not see is as what does not exist.
func Confirmed(ctx context.Context, in *v1.ReleaseBatch, host func(ctx context.Context, id string) (*v1.Host, error), cluster func(ctx context.Context, name string) (*v1.Cluster, error)) error {
	if in.Confirm == len(in.Hosts) {
		return nil
	}
	losing, free, unknown := map[string]int{}, 0, 0
	for _, named := range in.Hosts {
		h, err := host(ctx, named.ID)
		switch {
		case refusal.IsKind(err, refusal.NotFound):
			unknown++
		case err != nil:
			return err
		case h.Cluster == "":
			free++
		default:
			losing[h.Cluster]++
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(losing)) {
		part := fmt.Sprintf("cluster %s loses %d", name, losing[name])
		if c, err := cluster(ctx, name); err == nil {
			part += fmt.Sprintf(" of its %d", len(c.Hosts))
			if len(c.Hosts) == losing[name] {
				part += " (its last)"
			}
		}
		parts = append(parts, part)
	}
	if free > 0 {
		parts = append(parts, fmt.Sprintf("%d have no cluster", free))
	}
	if unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d are not there", unknown))
	}
	return refusal.New(refusal.Conflict, v1.CodeConfirm, fmt.Sprintf(`if that is meant, send "confirm": %d`, len(in.Hosts)),
		"the batch names %d hosts, and confirm says %d; nothing was done: %s", len(in.Hosts), in.Confirm, strings.Join(parts, "; "))
}
