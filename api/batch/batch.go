// Package batch does the same to each of several hosts of one request. It grants nothing by itself: each host is handled by the service
// that handles a request about it alone, with all guards of that.
package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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
	var group sync.WaitGroup
	turns := make(chan struct{}, AtOnce)
	for i, h := range hosts {
		turns <- struct{}{}
		if ctx.Err() != nil {
			errs[i] = refusal.New(refusal.Unavailable, "not_begun", "send it again", "the request ended before the turn of host %s came; it was not changed", refusal.Clip(h.ID))
			<-turns
			continue
		}
		group.Go(func() {
			defer func() { <-turns }()
			one := ctx
			if h.Version != "" {
				one = ifmatch.With(ctx, []string{h.Version})
			}
			changed[i], errs[i] = do(one, h.ID)
		})
	}
	group.Wait()
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

// Unconfirmed refuses a release of several hosts whose number the caller did not confirm. It says of each cluster how many of its hosts
// the batch names. hosts are those that exist for the caller; in has the number of hosts of clusters that the caller may see.
func Unconfirmed(confirmed, named int, hosts []*v1.Host, in func(cluster string) (int, bool)) error {
	losing, free := map[string]int{}, 0
	for _, h := range hosts {
		if h.Cluster == "" {
			free++
			continue
		}
		losing[h.Cluster]++
	}
	var parts []string
	for _, cluster := range slices.Sorted(maps.Keys(losing)) {
		part := fmt.Sprintf("cluster %s loses %d", cluster, losing[cluster])
		if all, known := in(cluster); known {
			part += fmt.Sprintf(" of its %d", all)
			if all == losing[cluster] {
				part += " (its last)"
			}
		}
		parts = append(parts, part)
	}
	if free > 0 {
		parts = append(parts, fmt.Sprintf("%d have no cluster", free))
	}
	if unknown := named - len(hosts); unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d are not there", unknown))
	}
	return refusal.New(refusal.Conflict, v1.CodeConfirm, fmt.Sprintf(`if that is meant, send "confirm": %d`, named),
		"the batch names %d hosts, and confirm says %d; nothing was done: %s", named, confirmed, strings.Join(parts, "; "))
}
