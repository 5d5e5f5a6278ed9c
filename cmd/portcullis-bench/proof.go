package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "portcullis/api/v1"
)

const (
	// mostTenants are how many tenants there are, at most; each has ten hosts, or more.
	mostTenants = 1000
	// verifyLimit bounds one request.
	verifyLimit = 10 * time.Minute
)

// proofRun is one request for a proof.
type proofRun struct {
	all, read float64 // seconds until the answer, and from the first request to the fabric to the last answer
	cpu       float64 // seconds of the service meanwhile, its Subnet Manager included
	peak      float64 // MiB that the service held, the most since its start
	report    *v1.Isolation
	load      float64
}

// proofResult is what was measured on one fabric.
type proofResult struct {
	fabric  *fabric
	tenants int
	before  float64 // MiB of the service before the first request
	runs    []proofRun
}

// prove measures "portcullis verify" on a fabric whose hosts are all admitted, but those of instances.
func prove(ctx context.Context, o *options, progress io.Writer) error {
	host, err := machine(ctx, o.program)
	if err != nil {
		return err
	}
	var results []*proofResult
	for _, hosts := range o.sizes {
		f, err := newFabric(hosts)
		if err != nil {
			return err
		}
		r := &proofResult{fabric: f}
		results = append(results, r)
		if err := r.measure(ctx, o, progress); err != nil {
			return fmt.Errorf("proof at %d hosts: %w", hosts, err)
		}
		if err := writeProof(o, host, results); err != nil {
			return err
		}
	}
	return nil
}

func (r *proofResult) measure(ctx context.Context, o *options, progress io.Writer) (err error) {
	g, err := r.fabric.serveOwn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	g.apart, g.tenants = true, max(2, min(mostTenants, g.hosts/10))
	r.tenants = g.tenants
	prepare, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	s, err := startServices(prepare, o, g)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := g.judgeTenants(); err != nil {
		return err
	}
	x := s.(*services)
	if err := x.idle(prepare); err != nil {
		return err
	}
	r.before = memoryOf(x.first.process.PID()).peak
	for range o.runs {
		one, err := x.verify(ctx)
		if err != nil {
			return err
		}
		r.runs = append(r.runs, one)
		b := &one.report.Bounds
		fmt.Fprintf(progress, "%d hosts, %d tenants: %.3f s, of which %.3f s read %d answers, CPU %.2f s, %.0f MiB, %s\n",
			r.fabric.hosts, r.tenants, one.all, one.read, b.Requests, one.cpu, one.peak, one.report.Verdict)
	}
	return nil
}

// verify asks for one proof of all tenants. What is not isolated is an error: nothing was done that would open a way.
func (x *services) verify(ctx context.Context) (out proofRun, err error) {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	pid := x.first.process.PID()
	if out.load, err = loadAverage(); err != nil {
		return out, err
	}
	before, err := cpuOf(pid)
	if err != nil {
		return out, err
	}
	began := time.Now()
	// Whether switches compare membership is shown by no attribute; the simulator's do.
	if out.report, err = x.first.api.VerifyIsolation(ctx, v1.IsolationQuery{Membership: true}); err != nil {
		return out, err
	}
	out.all = time.Since(began).Seconds()
	after, err := cpuOf(pid)
	if err != nil {
		return out, err
	}
	out.cpu, out.peak = after-before, memoryOf(pid).peak
	b := &out.report.Bounds
	out.read = b.Ended.Sub(b.Begun).Seconds()
	if out.report.Verdict != v1.Isolated {
		return out, fmt.Errorf("the verdict is %s (%s), want %s: %+v, first example %+v",
			out.report.Verdict, out.report.Reason, v1.Isolated, out.report.Pairs, out.report.Examples[:min(1, len(out.report.Examples))])
	}
	return out, nil
}
