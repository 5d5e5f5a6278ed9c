package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/hostrange"
	"portcullis/cmd/portcullis/cli"
)

// rangesHelp explains operands that stand for several hosts.
const rangesHelp = `HOST may be a range in quotes: "n[001-032,040]", "r[1-4]n[1-8]", or a list n1,n2. Each host is
handled by itself; one that fails does not stop the others, and the exit code is that of the
first that failed. --timeout is for all hosts together.`

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

// errNotBegun is why nothing was asked of a host.
var errNotBegun = errors.New("stopped before the service was asked")

// all calls do for each of some hosts, a few at the same time, by their index, and returns what it returned. After ctx ended it begins no more.
func all(ctx context.Context, number int, do func(i int) (*v1.Host, error)) ([]*v1.Host, []error) {
	hosts, errs := make([]*v1.Host, number), make([]error, number)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range number {
		group.Go(func() error {
			if ctx.Err() != nil {
				errs[i] = errNotBegun
				return nil
			}
			hosts[i], errs[i] = do(i)
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	return hosts, errs
}

// found returns hosts by their ids. All must be there.
func found(ctx context.Context, c *client.Client, ids []string) (map[string]*v1.Host, error) {
	hosts, errs := all(ctx, len(ids), func(i int) (*v1.Host, error) { return c.Hosts().Get(ctx, ids[i]) })
	out := map[string]*v1.Host{}
	for i, id := range ids {
		if errs[i] != nil {
			return nil, errs[i]
		}
		out[id] = hosts[i]
	}
	return out, nil
}

// change is what a command does to hosts.
type change struct {
	done string // what becomes of a host, for errors
	do   func(ctx context.Context, id string) (*v1.Host, error)
	wait cli.WaitFlags
	to   v1.Phase // to wait for
}

// each changes hosts and prints where they stand. Of several hosts it reports each that failed, and returns the first error. All are
// changed before the first one is waited for, and one time limit is for all.
func each(ctx context.Context, env *cli.Env, c *client.Client, ids []string, ch change) error {
	if len(ids) == 1 {
		h, err := ch.do(ctx, ids[0])
		if err != nil {
			return err
		}
		return afterChange(ctx, env, c, h, ch.wait, ch.to)
	}
	hosts, errs := all(ctx, len(ids), func(i int) (*v1.Host, error) { return ch.do(ctx, ids[i]) })
	if ch.wait.Wait {
		waitForAll(ctx, env, c, hosts, errs, ch)
		ch.done = string(ch.to)
	}
	list := v1.List[v1.Host]{Items: []v1.Host{}}
	var shown []*v1.Host
	var first error
	failed, notBegun := 0, 0
	for i, id := range ids {
		if err := errs[i]; err != nil {
			if failed++; first == nil {
				first = err
			}
			if errors.Is(err, errNotBegun) {
				notBegun++
				continue
			}
			fmt.Fprintf(env.Err, "portcullis: host %s: %s\n", cli.Plain(id), cli.Plain(err.Error()))
			continue
		}
		notRecorded(env, hosts[i])
		list.Items, shown = append(list.Items, *hosts[i]), append(shown, hosts[i])
	}
	if notBegun > 0 {
		fmt.Fprintf(env.Err, "portcullis: %d hosts: %v\n", notBegun, errNotBegun)
	}
	if err := env.Print(list, func(t *cli.Columns) { changed(t, shown...) }); err != nil {
		return err
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%d of %d hosts are not %s; the first: %w", failed, len(ids), ch.done, first)
}

// waitForAll waits for the hosts that have no error, and puts in its place what becomes of each. A host whose turn comes after the time limit
// is looked at once.
func waitForAll(ctx context.Context, env *cli.Env, c *client.Client, hosts []*v1.Host, errs []error, ch change) {
	var waits []int
	for i, err := range errs {
		if err == nil {
			waits = append(waits, i)
		}
	}
	within, cancel := context.WithTimeout(ctx, ch.wait.Timeout)
	defer cancel()
	after, failed := all(context.WithoutCancel(ctx), len(waits), func(n int) (*v1.Host, error) {
		return WaitFor(ctx, within, env, c, hosts[waits[n]], ch.wait.Timeout, ch.to)
	})
	for n, i := range waits {
		hosts[i], errs[i] = after[n], failed[n]
	}
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
