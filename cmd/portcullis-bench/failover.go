package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
)

const (
	// prepareLimit bounds bringing up a site, and failoverLimit one change of the leader.
	prepareLimit  = 30 * time.Minute
	failoverLimit = 5 * time.Minute
	// wakes is how long a leader that was paused is watched once it goes on.
	wakes = 3 * time.Second
)

// Ways in which a leader ends.
const (
	killed  = "killed"
	paused  = "paused"
	planned = "planned"
	stopped = "stopped"
	// restarted is a restart of the one service that there is.
	restarted = "restart"
)

// ownSimulator counts Sets and packets.
const ownSimulator = "portcullis-sim"

// takeover is what one change of the leader did.
type takeover struct {
	none       bool    // no other manager took over in the time silent
	sa, silent float64 // seconds
	cpu        float64 // seconds of those that could take over, until the answer
	wrote      written
	woken      written // by the one that was paused, once it went on
	sent, lost uint64
	changed    int // members whose LID or P_Keys are not as before
	load       float64
}

// restart is what a restart of one service did.
type restart struct {
	sm, ready, sa float64 // seconds until part sm and all parts are ready, and subnet administration answers
	cpu           float64 // seconds until all parts are ready
	wrote         written
	sent, lost    uint64
	changed       int
	load          float64
}

// standby are several subnet managers that stand in for one another.
type standby interface {
	// ends are the ways in which the leader can end.
	ends() []string
	// end ends the leader in one of them.
	end(ctx context.Context, how string) error
	// patience is how long the next one may take.
	patience(how string) time.Duration
	// settled waits until another one has settled the fabric.
	settled(ctx context.Context) error
	// successors are the processes that could take over from the leader that was ended.
	successors() (pids []int)
	// leader is the node of the leader that was ended last, and wake has it go on.
	leader() (node string)
	wake()
	// back has all take part again, and the fabric settled.
	back(ctx context.Context) error
	stop()
}

// rival is a kind of subnet managers to measure.
type rival struct {
	name  string
	start func(ctx context.Context, o *options, g *ground) (standby, error)
}

// rivals are measured side by side; the last is ours.
func rivals() []rival {
	return []rival{
		{"OpenSM", startPair("")},
		// A master is given up two seconds after its last answer, as a lease of ours ends.
		{"OpenSM, polled", startPair("sminfo_polling_timeout 500\npolling_retry_number 4\nmax_wire_smps 32\n")},
		{"Portcullis", startServices},
	}
}

// failoverResult is what was measured on one fabric served by one simulator.
type failoverResult struct {
	fabric    *fabric
	simulator string
	serve     func(context.Context) (*ground, error)
	takeovers []map[string][]takeover // by rival and way
	restarts  []restart
}

// failover measures changes of the leader, and restarts of one service.
func failover(ctx context.Context, o *options, progress io.Writer) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
	}
	var results []*failoverResult
	for i, hosts := range o.sizes {
		f, err := newFabric(hosts)
		if err != nil {
			return err
		}
		here := []*failoverResult{{fabric: f, simulator: ownSimulator, serve: f.serveOwn}}
		if i == 0 && !o.own {
			here = append(here, &failoverResult{fabric: f, simulator: "ibsim", serve: f.serveIbsim})
		}
		for _, r := range here {
			results = append(results, r)
			for k, rival := range rivals() {
				r.takeovers = append(r.takeovers, map[string][]takeover{})
				if o.only != "" && o.only != rival.name {
					continue
				}
				if err := r.measure(ctx, o, k, rival, progress); err != nil {
					return fmt.Errorf("%s at %d hosts on %s: %w", rival.name, hosts, r.simulator, err)
				}
				if err := writeFailover(o, host, results); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wants reports whether a way is measured.
func (o *options) wants(way string) bool { return len(o.ways) == 0 || slices.Contains(o.ways, way) }

// measure measures one rival on a fresh fabric.
func (r *failoverResult) measure(ctx context.Context, o *options, k int, rival rival, progress io.Writer) (err error) {
	g, err := r.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	prepare, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	s, err := rival.start(prepare, o, g)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := g.judgeTenants(); err != nil {
		return err
	}
	asker, err := g.ask(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, asker.stop()) }()
	if err := g.startFlows(); err != nil {
		return err
	}
	defer g.stopFlows()
	if x, ok := s.(*services); ok {
		if o.wants(restarted) {
			if err := r.restart(ctx, o, x, asker, progress); err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(s.ends(), o.wants) {
			return nil
		}
		if err := x.grow(prepare); err != nil {
			return err
		}
	}
	ended := false
	for range o.runs {
		for _, how := range s.ends() {
			if !o.wants(how) {
				continue
			}
			if how == paused && g.sim == nil {
				continue // ibsim itself stands still once the socket of such a client is full
			}
			t, err := g.repeated(ctx, s, asker, how, ended, progress)
			if err != nil {
				return fmt.Errorf("%s: %w", how, err)
			}
			ended = true
			r.takeovers[k][how] = append(r.takeovers[k][how], t)
			fmt.Fprintf(progress, "%d hosts, %s, %s, %s: %s\n", r.fabric.hosts, r.simulator, rival.name, how, t.line())
		}
	}
	return nil
}

// hangs is how often a takeover is measured again in which OpenSM hung, see hangLimit.
const hangs = 5

// repeated measures a takeover, and again where OpenSM hung although its master ended.
func (g *ground) repeated(ctx context.Context, s standby, asker *pathAsker, how string, back bool, progress io.Writer) (t takeover, err error) {
	_, theirs := s.(*openSMPair)
	for attempt := range hangs {
		if back || attempt > 0 {
			prepare, cancel := context.WithTimeout(ctx, prepareLimit)
			err := s.back(prepare)
			cancel()
			if err != nil {
				return t, fmt.Errorf("all take part again: %w", err)
			}
		}
		t, err = g.takeOver(ctx, s, asker, how)
		if err != nil || !t.none || !theirs || how == paused {
			break
		}
		fmt.Fprintf(progress, "%s: OpenSM hung, once more\n", how)
	}
	return t, err
}

func (t *takeover) line() string {
	if t.none {
		return fmt.Sprintf("no other manager took over; it then wrote %+v", t.woken)
	}
	return fmt.Sprintf("%.3f s to an answer, %.3f s without any, CPU %.2f s, %d of %d packets lost, wrote %+v, %d members changed, woken it wrote %+v",
		t.sa, t.silent, t.cpu, t.lost, t.sent, t.wrote, t.changed, t.woken)
}

// takeOver ends the leader, and waits until another one has taken over.
func (g *ground) takeOver(ctx context.Context, s standby, asker *pathAsker, how string) (t takeover, err error) {
	ctx, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	if t.load, err = loadAverage(); err != nil {
		return t, err
	}
	old, err := asker.forget(ctx)
	if err != nil {
		return t, err
	}
	holds, sets := g.holds(), g.sets()
	sent, lost := g.packets()
	began := time.Now()
	if err := s.end(ctx, how); err != nil {
		return t, err
	}
	next := s.successors()
	before, err := cpuOfAll(next)
	if err != nil {
		return t, err
	}
	if err := t.answered(ctx, asker, began, old, s.patience(how)); err != nil {
		return t, err
	}
	after, err := cpuOfAll(next)
	if err != nil {
		return t, err
	}
	t.cpu = after - before
	if !t.none {
		if err := s.settled(ctx); err != nil {
			return t, err
		}
	}
	t.wrote, t.changed = g.sets().since(sets), differ(holds, g.holds())
	t.sent, t.lost = g.packets()
	t.sent, t.lost = t.sent-sent, t.lost-lost
	if how == paused {
		node := s.leader()
		before := g.sets(node)
		s.wake()
		select {
		case <-time.After(wakes):
		case <-ctx.Done():
		}
		t.woken = g.sets(node).since(before)
	}
	return t, nil
}

// answered waits for an answer of another manager.
func (t *takeover) answered(ctx context.Context, asker *pathAsker, began time.Time, old ib.LID, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, silent, err := asker.first(waiting, began, old)
	if waiting.Err() != nil && ctx.Err() == nil {
		t.none, t.silent = true, patience.Seconds()
		return nil
	}
	t.sa, t.silent = at.Sub(began).Seconds(), silent.Seconds()
	return err
}

// restart stops the one service and starts it again, as often as asked.
func (r *failoverResult) restart(ctx context.Context, o *options, x *services, asker *pathAsker, progress io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	for range o.runs {
		one, err := x.restart(ctx, asker)
		if err != nil {
			return fmt.Errorf("restart: %w", err)
		}
		r.restarts = append(r.restarts, one)
		fmt.Fprintf(progress, "%d hosts, %s, restart: part sm %.3f s, all %.3f s, answer %.3f s, CPU %.2f s, %d of %d packets lost, wrote %+v, %d members changed\n",
			r.fabric.hosts, r.simulator, one.sm, one.ready, one.sa, one.cpu, one.lost, one.sent, one.wrote, one.changed)
	}
	return nil
}

func (x *services) restart(ctx context.Context, asker *pathAsker) (t restart, err error) {
	g := x.ground
	if t.load, err = loadAverage(); err != nil {
		return t, err
	}
	if _, err := asker.forget(ctx); err != nil {
		return t, err
	}
	holds, sets := g.holds(), g.sets()
	sent, lost := g.packets()
	x.first.stop()
	began := time.Now()
	if err := x.first.start(); err != nil {
		return t, err
	}
	for _, part := range []struct {
		name    string
		seconds *float64
	}{{"sm", &t.sm}, {"", &t.ready}} {
		err := program.AwaitEvery(ctx, glance, "part "+part.name+" is ready", func() (bool, error) { return x.first.ready(ctx, part.name), x.first.process.Ended() })
		if err != nil {
			return t, err
		}
		*part.seconds = time.Since(began).Seconds()
	}
	if t.cpu, err = cpuOf(x.first.process.PID()); err != nil {
		return t, err
	}
	at, _, err := asker.first(ctx, began, 0)
	if err != nil {
		return t, err
	}
	t.sa = at.Sub(began).Seconds()
	if _, err := x.leads(ctx, nil); err != nil {
		return t, err
	}
	t.wrote, t.changed = g.sets().since(sets), differ(holds, g.holds())
	t.sent, t.lost = g.packets()
	t.sent, t.lost = t.sent-sent, t.lost-lost
	return t, nil
}

// cpuOfAll adds up the CPU seconds of processes that run.
func cpuOfAll(pids []int) (sum float64, err error) {
	for _, pid := range pids {
		one, err := cpuOf(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}
