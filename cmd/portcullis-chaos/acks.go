package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

const (
	// tenantEvery is how often each instance is asked to create a tenant.
	tenantEvery = time.Second
	// tenantsKept is how many of them stay before the oldest is deleted.
	tenantsKept = 10
	// loadPrefix is that of their names.
	loadPrefix = "load-"
)

// acks is what instances acknowledged: tenants that were created, and that were deleted.
// One about which the answer was an error is in neither.
type acks struct {
	mu    sync.Mutex
	there map[string]bool
	gone  map[string]bool
}

func newAcks() *acks { return &acks{there: map[string]bool{}, gone: map[string]bool{}} }

// set notes what is known of a tenant now.
func (a *acks) set(name string, there, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.there, name)
	if there {
		a.there[name] = true
	}
	if gone {
		a.gone[name] = true
	}
}

func (a *acks) copies() (there, gone map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.there), maps.Clone(a.gone)
}

// write has an instance create and delete tenants until ctx ends, each time with one of
// changes.
func (a *acks) write(ctx context.Context, n *instance, changes *semaphore.Weighted) error {
	tick := time.NewTicker(tenantEvery)
	defer tick.Stop()
	var kept []string
	for i := 0; ; i++ {
		if err := changes.Acquire(ctx, 1); err != nil {
			return nil // ctx has ended
		}
		name := fmt.Sprintf("%s%d-%d", loadPrefix, n.number+1, i)
		if _, err := n.client.Tenants().Create(ctx, v1.NewTenant{Name: name}); err == nil {
			a.set(name, true, false)
			kept = append(kept, name)
		}
		if len(kept) > tenantsKept {
			oldest := kept[0]
			kept = kept[1:]
			a.set(oldest, false, false)
			if err := n.client.Tenants().Delete(client.IfMatch(ctx, client.AnyVersion), oldest); err == nil {
				a.set(oldest, false, true)
			}
		}
		changes.Release(1)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// begin has what an instance shows be what was acknowledged.
func (a *acks) begin(shown map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.there)
	clear(a.gone)
	for name := range shown {
		if strings.HasPrefix(name, loadPrefix) {
			a.there[name] = true
		}
	}
}

// kept returns an error for the first tenant that an instance no longer shows although its
// creation was acknowledged, or shows although its deletion was.
func (a *acks) kept(ctx context.Context, n *instance) error {
	before, gone := a.copies()
	shown, err := n.tenants(ctx)
	if err != nil {
		return err
	}
	after, _ := a.copies()
	if err := missing(before, after, gone, shown); err != nil {
		return fmt.Errorf("%w: as %s shows it, %w", errForgotten, n.name(), err)
	}
	return nil
}

// tenants returns the names of those that an instance shows.
func (n *instance) tenants(ctx context.Context) (map[string]bool, error) {
	all, err := n.client.Tenants().All(ctx)
	shown := make(map[string]bool, len(all))
	for i := range all {
		shown[all[i].Name] = true
	}
	return shown, err
}

// missing judges which tenants are shown: all that were there before and after they were
// asked for, and none that was gone before.
func missing(before, after, gone, shown map[string]bool) error {
	for name := range before {
		if after[name] && !shown[name] {
			return fmt.Errorf("the creation of tenant %s was acknowledged, and it is not there", name)
		}
	}
	for name := range gone {
		if shown[name] {
			return fmt.Errorf("the deletion of tenant %s was acknowledged, and it is there", name)
		}
	}
	return nil
}
