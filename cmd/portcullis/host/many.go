package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/hostrange"
	"portcullis/cmd/portcullis/cli"
)

// rangesHelp explains operands that stand for several hosts.
const rangesHelp = `HOST may be a range in quotes: "n[001-032,040]", "r[1-4]n[1-8]", or a list n1,n2. Each host is
handled by itself; one that fails does not stop the others, and the exit code is that of the
first that failed.`

// atOnce is how many hosts are handled at the same time.
const atOnce = 16

// expand returns the hosts that operands stand for.
func expand(args []string) ([]string, error) {
	ids, err := hostrange.Expand(args)
	if err != nil {
		return nil, &cli.UsageError{Msg: err.Error(), Hint: `for example "n[001-032,040]" or n1,n2`}
	}
	return ids, nil
}

// hosts is expand for a command that may name an assignment: that is of one host.
func (e *epochFlag) hosts(args []string) ([]string, error) {
	ids, err := expand(args)
	if err == nil && e.epoch >= 0 && len(ids) > 1 {
		return nil, &cli.UsageError{Msg: fmt.Sprintf("--epoch %d is an assignment of one host, and %d are named", e.epoch, len(ids)), Hint: "name one host"}
	}
	return ids, err
}

// all calls do for each host, some at the same time, and returns what it returned in the order of the hosts.
func all(ctx context.Context, ids []string, do func(ctx context.Context, id string) (*v1.Host, error)) ([]*v1.Host, []error) {
	hosts, errs := make([]*v1.Host, len(ids)), make([]error, len(ids))
	var group sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i, id := range ids {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			if hosts[i], errs[i] = nil, context.Cause(ctx); errs[i] == nil {
				hosts[i], errs[i] = do(ctx, id)
			}
		})
	}
	group.Wait()
	return hosts, errs
}

// found returns hosts by their ids. All must be there.
func found(ctx context.Context, c *client.Client, ids []string) (map[string]*v1.Host, error) {
	hosts, errs := all(ctx, ids, func(ctx context.Context, id string) (*v1.Host, error) { return c.Hosts().Get(ctx, id) })
	out := map[string]*v1.Host{}
	for i, id := range ids {
		if errs[i] != nil {
			return nil, errs[i]
		}
		out[id] = hosts[i]
	}
	return out, nil
}

// each changes hosts and prints where they stand. Of several hosts it reports each that failed, and returns the first error. done says
// what becomes of a host.
func each(ctx context.Context, env *cli.Env, c *client.Client, ids []string, done string, do func(ctx context.Context, id string) (*v1.Host, error)) error {
	if len(ids) == 1 {
		h, err := do(ctx, ids[0])
		if err != nil {
			return err
		}
		return afterChange(ctx, env, c, h, cli.WaitFlags{}, "")
	}
	hosts, errs := all(ctx, ids, do)
	list := v1.List[v1.Host]{Items: []v1.Host{}}
	var shown []*v1.Host
	var first error
	failed := 0
	for i, id := range ids {
		if err := errs[i]; err != nil {
			if failed++; first == nil {
				first = err
			}
			fmt.Fprintf(env.Err, "portcullis: host %s: %s\n", cli.Plain(id), cli.Plain(err.Error()))
			continue
		}
		notRecorded(env, hosts[i])
		list.Items, shown = append(list.Items, *hosts[i]), append(shown, hosts[i])
	}
	if err := env.Print(list, func(t *cli.Columns) { changed(t, shown...) }); err != nil {
		return err
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%d of %d hosts are not %s; the first: %w", failed, len(ids), done, first)
}

// confirmRelease asks whether hosts are meant to be released; of several, their number has to be named.
func confirmRelease(env *cli.Env, yes bool, number int, hosts map[string]*v1.Host) error {
	var plans []string
	for _, id := range slices.Sorted(maps.Keys(hosts)) {
		plans = append(plans, releasePlan(hosts[id]))
	}
	if len(plans) == 1 && (number < 0 || number == 1) {
		return env.Confirm(yes, plans[0])
	}
	return env.ConfirmMany(yes, number, plans)
}
