package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// subject is a subnet manager at work, to which things happen.
type subject interface {
	// mark notes where it stands.
	mark(ctx context.Context) error
	// settled waits until the events since the mark have no more effects. It returns the time at which the manager reported
	// that it was done, and the requests that it sent.
	settled(ctx context.Context) (at time.Time, sent requests, err error)
	// reread has it read its partitions again.
	reread() error
	pid() int
	stop() error
}

// requests are the SMPs that a subnet manager sent.
type requests struct {
	all      uint64
	repeated uint64 // number that repeat one not answered in time, as far as the manager reports it
}

// contender is a subnet manager to measure; start returns it once the fabric is up.
type contender struct {
	name  string
	start func(ctx context.Context, lab *ibsimlab.Lab, program, partitions string) (subject, error)
}

// contenders are measured side by side; the last is ours.
func contenders() []contender {
	return []contender{
		{"OpenSM", startOpenSM()},
		{"OpenSM -n 32 -A", startOpenSM("-n", "32", "-A")},
		{"Portcullis", startPortcullis},
	}
}

// eventResult is what was measured on one fabric: samples by contender and
// change.
type eventResult struct {
	fabric  *fabric
	changes []change
	samples [][][]sample
}

// events measures changes of a fabric that is up, and writes the table.
func events(ctx context.Context, o *options, progress io.Writer) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
	}
	var results []eventResult
	for _, hosts := range o.sizes {
		f, err := newFabric(hosts)
		if err != nil {
			return err
		}
		r := eventResult{fabric: f, changes: changesOf(f)}
		for _, c := range contenders() {
			samples, err := f.happen(ctx, &c, o, r.changes, progress)
			if err != nil {
				return fmt.Errorf("%s at %d hosts: %w", c.name, hosts, err)
			}
			r.samples = append(r.samples, samples)
		}
		results = append(results, r)
		if err := writeEvents(o, host, results); err != nil {
			return err
		}
	}
	return nil
}

// happen brings the fabric up in a fresh simulator and makes every change runs times. It returns samples by change.
func (f *fabric) happen(ctx context.Context, c *contender, o *options, changes []change, progress io.Writer) (by [][]sample, err error) {
	lab, err := ibsimlab.Start(ctx, ibsimlab.Options{Netlist: f.file})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lab.Stop()) }()
	deal := newDeal(f, lab.Dir())
	if err := deal.write(); err != nil {
		return nil, err
	}
	s, err := c.start(ctx, lab, o.program, deal.file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	stage := &stage{fabric: f, lab: lab, deal: deal, subject: s}
	by = make([][]sample, len(changes))
	for range o.runs {
		for i := range changes {
			one, err := stage.measure(ctx, &changes[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", changes[i].name, err)
			}
			by[i] = append(by[i], one)
			fmt.Fprintf(progress, "%d hosts, %s, %s: %.4f s, %d SMPs, CPU %.3f s\n",
				f.hosts, c.name, changes[i].name, one.wall, one.smps, one.cpu)
		}
	}
	return by, nil
}

// stage is a running fabric and its manager.
type stage struct {
	fabric  *fabric
	lab     *ibsimlab.Lab
	deal    *deal
	subject subject
}

// measure makes one change, waits for its end, and has unchanged tools judge.
func (g *stage) measure(ctx context.Context, c *change) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.load, err = loadAverage(); err != nil {
		return s, err
	}
	if err := g.subject.mark(ctx); err != nil {
		return s, err
	}
	before, err := cpuOf(g.subject.pid())
	if err != nil {
		return s, err
	}
	began := time.Now()
	if err := c.make(g); err != nil {
		return s, err
	}
	at, sent, err := g.subject.settled(ctx)
	if err != nil {
		return s, err
	}
	after, err := cpuOf(g.subject.pid())
	if err != nil {
		return s, err
	}
	s.wall, s.cpu = at.Sub(began).Seconds(), after-before
	s.smps, s.repeated = sent.all, sent.repeated
	return s, c.judge(ctx, g)
}
