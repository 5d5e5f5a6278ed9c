package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/softagent"
)

const (
	// provisioners are how many clients assign hosts at once.
	provisioners = 16
	// readers are how many clients read at once.
	readers = 100
	// inFlight is how many agents of a storm have a connection at once, for the sake of this process.
	inFlight = 1000
	// churnRate is how many hosts a second change their cluster.
	churnRate = 20
	// sampleEvery is how often the memory of the service is read.
	sampleEvery = 5 * time.Second
	// effectLimit bounds the wait for an effect in the fabric.
	effectLimit = 10 * time.Minute
)

// controlResult is what was measured on one fabric.
type controlResult struct {
	fabric  *fabric
	tenants int
	agents  int

	assign   summary // hosts to clusters: until the answer
	attest   summary // each agent of the storm, from its connection to its hand-over
	admit    summary // and from its hand-over until the P_Key is in the simulator
	read     summary // requests of readers
	release  summary // of hosts that churn: until the answer
	isolate  summary // from the request until no switch port has the P_Key
	reassign summary // until the answer
	effect   summary // from the hand-over until the P_Key is in the simulator
	late     int     // changes that were due and had no host
	memory   []float64
	ready    float64 // seconds from the start of the process to its readiness
	peak     float64 // MiB, over all
	load     float64
}

// control measures what programs of a cloud do at once.
func control(ctx context.Context, o *options, progress io.Writer) error {
	begin := func(f *fabric, load float64) *controlResult { return &controlResult{fabric: f, load: load} }
	once := func(r *controlResult) error { return r.measure(ctx, o, progress) }
	return eachSize(ctx, o, begin, once, writeControl)
}

func (r *controlResult) measure(ctx context.Context, o *options, progress io.Writer) (err error) {
	g, err := r.fabric.serveOwn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	prepare, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	s, err := newControlSite(prepare, o, g)
	if err != nil {
		return err
	}
	defer s.stop()
	s.watch = g.newWatcher()
	defer s.watch.close()
	r.tenants, r.agents = g.tenants, len(s.agents)
	say := func(what string, m *summary) {
		fmt.Fprintf(progress, "%d hosts: %s: %s\n", r.fabric.hosts, what, m.line())
	}
	if r.assign, err = s.assignAll(ctx); err != nil {
		return err
	}
	say("assigned", &r.assign)
	if r.attest, r.admit, err = s.storm(ctx); err != nil {
		return err
	}
	say("attested", &r.attest)
	say("admitted", &r.admit)
	if err := g.judgeTenants(); err != nil {
		return err
	}
	if r.read, err = s.readAll(ctx, o.duration/10); err != nil {
		return err
	}
	say("read", &r.read)
	if err := r.churn(ctx, s, o.duration); err != nil {
		return err
	}
	say("released", &r.release)
	say("isolated", &r.isolate)
	say("assigned again", &r.reassign)
	say("admitted again", &r.effect)
	if err := g.judgeTenants(); err != nil {
		return err
	}
	r.peak = memoryOf(s.first.process.PID()).peak
	r.ready, err = s.restart(prepare)
	fmt.Fprintf(progress, "%d hosts: ready %.1f s after a restart; %.0f MiB at most\n", r.fabric.hosts, r.ready, r.peak)
	return err
}

// ownAddress returns an address of loopback of the client with a number, 0 to 65535, of some kind, 1 to 254: the service limits each address.
func ownAddress(kind, number int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(kind), byte(number >> 8), byte(number)})
}

// assignAll assigns all hosts to the clusters of their tenants.
func (s *controlSite) assignAll(ctx context.Context) (summary, error) {
	var took timings
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(provisioners)
	for _, a := range s.agents {
		g.Go(func() error { return s.assign(ctx, a, &took) })
	}
	err := g.Wait()
	return took.summary(), err
}

func (s *controlSite) assign(ctx context.Context, a *agent, took *timings) error {
	began := time.Now()
	if _, err := s.cloud(a).Hosts().Assign(ctx, a.id, v1.Assignment{Cluster: a.cluster}); err != nil {
		return fmt.Errorf("assign %s: %w", a.id, err)
	}
	took.since(began)
	return nil
}

// storm has all agents attest their hosts at the same moment, and returns how long each needed, and how long it was until its
// P_Key was in the fabric.
func (s *controlSite) storm(ctx context.Context) (attested, admitted summary, err error) {
	var attest, admit timings
	connections := semaphore.NewWeighted(inFlight)
	g, storm := errgroup.WithContext(ctx)
	for _, a := range s.agents {
		g.Go(func() error {
			if err := connections.Acquire(storm, 1); err != nil {
				return err
			}
			defer connections.Release(1)
			_, err := s.attest(storm, a, &attest, &admit)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return attested, admitted, err
	}
	ctx, cancel := context.WithTimeout(ctx, effectLimit)
	defer cancel()
	for s.watch.waiting() > 0 {
		select {
		case <-ctx.Done():
			return attested, admitted, fmt.Errorf("%d hosts have no P_Key in the fabric: %w", s.watch.waiting(), context.Cause(ctx))
		case <-time.After(sampleEvery / 100):
		}
	}
	return attest.summary(), admit.summary(), nil
}

// attest attests a host, and again where the service is too busy, as agents do without end. The channel is closed once its P_Key is
// in the fabric.
func (s *controlSite) attest(ctx context.Context, a *agent, took, effect *timings) (<-chan struct{}, error) {
	for began := time.Now(); ; {
		err := softagent.Attest(ctx, a.api, a.tpm)
		if err == nil {
			took.since(began)
			return s.watch.await(a, true, time.Now(), effect), nil
		}
		if ctx.Err() != nil || time.Since(began) > effectLimit {
			return nil, fmt.Errorf("attest %s: %w", a.id, err)
		}
		took.refuse()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second + time.Duration(rand.Int64N(int64(time.Second)))):
		}
	}
}

// readAll has clients with connections of their own read hosts, clusters and pages of a list, all the time, each at least once.
func (s *controlSite) readAll(ctx context.Context, long time.Duration) (summary, error) {
	var took timings
	ends := time.Now().Add(long)
	g, ctx := errgroup.WithContext(ctx)
	for n := range readers {
		c, err := s.first.client(ownAddress(1, n))
		if err != nil {
			return summary{}, err
		}
		g.Go(func() error {
			for {
				began := time.Now()
				if err := s.read(ctx, c); err != nil {
					return err
				}
				if took.since(began); !time.Now().Before(ends) {
					return nil
				}
			}
		})
	}
	err := g.Wait()
	return took.summary(), err
}

// read reads a host, in one of 16 cases a cluster, and in another one a page of a hundred hosts.
func (s *controlSite) read(ctx context.Context, c *client.Client) (err error) {
	a := s.agents[rand.IntN(len(s.agents))]
	switch rand.IntN(16) {
	case 0:
		_, err = c.Clusters().Get(ctx, a.cluster)
	case 1:
		_, err = c.Hosts().IDPage(ctx, v1.HostQuery{PageQuery: v1.PageQuery{Limit: 100}})
	default:
		_, err = c.Hosts().Get(ctx, a.id)
	}
	return err
}

// release releases a host and waits until that is read back. Timings can be nil.
func (s *controlSite) release(ctx context.Context, a *agent, took, isolated *timings) error {
	began := time.Now()
	var gone <-chan struct{}
	if isolated != nil {
		gone = s.watch.await(a, false, began, isolated)
	}
	if _, err := s.cloud(a).Hosts().Release(client.IfMatch(ctx, client.AnyVersion), a.id); err != nil {
		return fmt.Errorf("release %s: %w", a.id, err)
	}
	if took != nil {
		took.since(began)
	}
	if gone != nil {
		select {
		case <-gone:
		case <-ctx.Done():
			return fmt.Errorf("the P_Key of %s stays at its switch port: %w", a.id, context.Cause(ctx))
		}
	}
	return s.isReleased(ctx, a)
}

// move releases a host, and assigns it again.
func (r *controlResult) move(ctx context.Context, s *controlSite, a *agent, t *moves) error {
	ctx, cancel := context.WithTimeout(ctx, effectLimit)
	defer cancel()
	if err := s.release(ctx, a, &t.release, &t.isolate); err != nil {
		return err
	}
	if err := s.assign(ctx, a, &t.assign); err != nil {
		return err
	}
	admitted, err := s.attest(ctx, a, &t.attest, &t.effect)
	if err != nil {
		return err
	}
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s has no P_Key in the fabric: %w", a.id, context.Cause(ctx))
	}
}

// moves are the timings of hosts that are released and assigned again.
type moves struct{ release, isolate, assign, attest, effect timings }

// churn has churnRate hosts a second released and assigned again, and reads the memory of the service meanwhile.
func (r *controlResult) churn(ctx context.Context, s *controlSite, long time.Duration) error {
	var t moves
	free := make(chan *agent, len(s.agents))
	for _, i := range rand.Perm(len(s.agents)) {
		free <- s.agents[i]
	}
	g, churn := errgroup.WithContext(ctx)
	due, sample := time.NewTicker(time.Second/churnRate), time.NewTicker(sampleEvery)
	defer due.Stop()
	defer sample.Stop()
	ends := time.NewTimer(long)
	defer ends.Stop()
	for going := true; going; {
		select {
		case <-churn.Done():
			going = false
		case <-ends.C:
			going = false
		case <-sample.C:
			r.memory = append(r.memory, memoryOf(s.first.process.PID()).private)
		case <-due.C:
			select {
			case a := <-free:
				g.Go(func() error {
					err := r.move(churn, s, a, &t)
					free <- a
					return err
				})
			default:
				r.late++
			}
		}
	}
	err := g.Wait()
	r.memory = append(r.memory, memoryOf(s.first.process.PID()).private)
	r.release, r.isolate, r.reassign, r.effect = t.release.summary(), t.isolate.summary(), t.assign.summary(), t.effect.summary()
	return err
}

// restart stops the service and starts it again, and returns the seconds until all of it is ready.
func (s *controlSite) restart(ctx context.Context) (float64, error) {
	s.first.stop()
	if err := s.first.start(); err != nil {
		return 0, err
	}
	for !s.first.ready(ctx, "") {
		if err := s.first.process.Ended(); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for a service that is ready: %w", context.Cause(ctx))
		case <-time.After(glance):
		}
	}
	return time.Since(s.first.began).Seconds(), nil
}
