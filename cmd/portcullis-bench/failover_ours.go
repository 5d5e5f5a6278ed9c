package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/program"
	"portcullis/packaging/testenv/loopback"
)

// service is one instance of portcullisd.
type service struct {
	name    string // and that of its node
	program string
	dir     string // configuration, and beside it the state and the log
	url     string
	urls    [2]string // of its member: for other members, for clients
	claims  [3]*loopback.Claim
	api     *client.Client
	http    *http.Client
	process *program.Process // nil while it is down
	began   time.Time        // of the process
}

// services are instances on one store, each on an adapter of its own.
type services struct {
	ground *ground
	first  *service
	others []*service // that can join it
	all    []*service // that have joined
	old    *service   // the leader that was ended last
	ended  bool       // its process was, too
}

// install makes the first instance, with the records of a site, and siblings with the same
// roots, tokens and certificates, which are in no cluster yet.
func (g *ground) install(ctx context.Context, path string) (*services, error) {
	x := &services{ground: g}
	for _, seat := range g.seats {
		s := &service{name: g.node(seat), program: path, dir: filepath.Join(g.dir, fmt.Sprintf("host-%d", seat))}
		err := s.claim()
		if err != nil {
			return nil, err
		}
		if x.first == nil {
			err = x.installFirst(ctx, s)
		} else {
			err = x.installNext(ctx, s)
		}
		if err != nil {
			return nil, err
		}
	}
	x.all = []*service{x.first}
	return x, nil
}

func (x *services) installFirst(ctx context.Context, s *service) error {
	x.first = s
	_, err := program.Call(ctx, s.program, "init", "--dir", s.etc(), "--names", "127.0.0.1", "--listen", s.listen(),
		"--state-dir", s.state(), "--fabric-port", x.port(s))
	if err != nil {
		return err
	}
	edits := map[string]string{"mode: pinned+chain": "mode: pinned", "assurance: G1": "assurance: none", "require_lock: true": "require_lock: false"}
	if x.ground.sim == nil {
		edits["enforcement: verified"] = "enforcement: accepted" // ibsim forgets the bits
	}
	return errors.Join(s.edit(edits), s.dial())
}

func (x *services) installNext(ctx context.Context, s *service) error {
	// The files that init makes for another machine are replaced by those of the first one.
	if _, err := program.Call(ctx, s.program, "init", "--dir", s.etc(), "--names", "127.0.0.1", "--state-dir", s.state()); err != nil {
		return err
	}
	if err := os.RemoveAll(s.etc()); err != nil {
		return err
	}
	if _, err := program.Call(ctx, "cp", "-a", x.first.etc(), s.etc()); err != nil {
		return err
	}
	x.others = append(x.others, s)
	return errors.Join(s.edit(map[string]string{x.first.state(): s.state(), x.first.listen(): s.listen(), x.port(x.first): x.port(s)}), s.dial())
}

// port is how an instance names its port.
func (x *services) port(s *service) string { return "ibsim:" + x.ground.client.Socket + "/" + s.name }

// claim claims the addresses of an instance until the process ends.
func (s *service) claim() (err error) {
	for i, url := range []*string{&s.url, &s.urls[0], &s.urls[1]} {
		if s.claims[i], err = loopback.New(); err != nil {
			return err
		}
		*url = "https://" + s.claims[i].Address
	}
	return nil
}

func (s *service) listen() string { return strings.TrimPrefix(s.url, "https://") }
func (s *service) etc() string    { return filepath.Join(s.dir, "etc") }
func (s *service) state() string  { return filepath.Join(s.dir, "state") }
func (s *service) config() string { return filepath.Join(s.etc(), "portcullisd.yaml") }

// edit replaces texts in the configuration, each of which must be there.
func (s *service) edit(edits map[string]string) error {
	data, err := os.ReadFile(s.config())
	if err != nil {
		return err
	}
	text := string(data)
	for old, now := range edits {
		if !strings.Contains(text, old) {
			return fmt.Errorf("the configuration has no %q", old)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	return os.WriteFile(s.config(), []byte(text), 0o600)
}

// dial makes the clients of its API.
func (s *service) dial() error {
	ca, err := os.ReadFile(s.ca())
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	s.http = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
	s.api, err = s.client(netip.Addr{})
	return err
}

func (s *service) ca() string { return filepath.Join(s.etc(), "tls", "ca.pem") }

// client returns a client with connections of its own, from an address of loopback; zero: from any.
func (s *service) client(from netip.Addr) (*client.Client, error) {
	ca, err := os.ReadFile(s.ca())
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(s.etc(), "operator.token"))
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{URL: s.url, CA: ca, Token: string(bytes.TrimSpace(token)), Timeout: 2 * time.Minute, LocalAddress: from})
}

func (s *service) start() (err error) {
	s.began = time.Now()
	s.process, err = program.Start(program.Options{Dir: s.dir, Name: "log", Path: s.program, Args: []string{"--config", s.config()}})
	return err
}

func (s *service) stop() {
	if s.process != nil {
		_ = s.process.Signal(syscall.SIGCONT) // one that is stopped takes no signal
		s.process.Stop()
		s.process = nil
	}
}

// runs reports whether the process runs.
func (s *service) runs() bool { return s.process != nil && s.process.Ended() == nil }

// ready reports whether a part of the service is ready; "" means all of it.
func (s *service) ready(ctx context.Context, part string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz?part="+part, http.NoBody)
	if err != nil {
		return false
	}
	a, err := s.http.Do(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, a.Body)
	return errors.Join(err, a.Body.Close()) == nil && a.StatusCode == http.StatusOK
}

// cluster runs "portcullisd cluster" beside an instance.
func (s *service) cluster(ctx context.Context, args ...string) (string, error) {
	out, err := program.Call(ctx, s.program, append(append([]string{"cluster"}, args...), "--config", s.config())...)
	return string(out), err
}

// grow has the one instance become several, each of which has led once: then each knows the
// ports of all.
func (x *services) grow(ctx context.Context) error {
	first := x.first
	first.stop()
	if _, err := first.cluster(ctx, "init", "--name", first.name, "--peer", first.urls[0], "--client", first.urls[1]); err != nil {
		return err
	}
	if err := first.start(); err != nil {
		return err
	}
	if _, err := x.leads(ctx, nil); err != nil {
		return err
	}
	for _, s := range x.others {
		if err := x.invite(ctx, s); err != nil {
			return err
		}
	}
	led := map[string]bool{}
	for {
		leader, err := x.leads(ctx, nil)
		if err != nil {
			return err
		}
		if led[leader.name] = true; len(led) == seats {
			return nil
		}
		// An instance that has just started is not known as one that could lead yet.
		var refused error
		err = program.AwaitEvery(ctx, glance, "another instance stands by", func() (bool, error) {
			refused = x.stepDown(ctx, leader)
			return refused == nil, leader.process.Ended()
		})
		if err != nil {
			return errors.Join(err, refused)
		}
		if _, err := x.leads(ctx, leader); err != nil {
			return err
		}
	}
}

// invite has another instance join, and starts it.
func (x *services) invite(ctx context.Context, s *service) error {
	file := filepath.Join(s.dir, "invitation")
	if _, err := x.first.cluster(ctx, "invite", "--name", s.name, "--peer", s.urls[0], "--client", s.urls[1], "--out", file); err != nil {
		return err
	}
	if _, err := s.cluster(ctx, "join", "--invitation", file); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	x.all = append(x.all, s)
	want := fmt.Sprintf("%[1]d of %[1]d voting members are reachable", len(x.all))
	return program.AwaitEvery(ctx, glance, want, func() (bool, error) {
		out, err := x.first.cluster(ctx, "list")
		return err == nil && strings.Contains(out, want), s.process.Ended()
	})
}

// now returns the instance that leads a settled fabric; nil: none, as far as is known.
func (x *services) now(ctx context.Context) *service {
	for _, s := range x.all {
		if !s.runs() {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		now, err := s.api.SM().Get(ctx)
		cancel()
		if err != nil || !now.Settled {
			continue
		}
		for _, o := range x.all {
			at := x.ground.list.Find(o.name).PortGUID(1)
			if (now.Leader == o.name || len(x.all) == 1) && now.GUID == at && now.Updated.After(o.began) {
				return o
			}
		}
	}
	return nil
}

// leads waits until an instance leads a settled fabric, another one than some.
func (x *services) leads(ctx context.Context, than *service) (leader *service, err error) {
	err = program.AwaitEvery(ctx, glance, "the fabric is settled", func() (bool, error) {
		for _, s := range x.all {
			if s.process == nil || s == than {
				continue
			}
			if err := s.process.Ended(); err != nil {
				return false, err
			}
		}
		leader = x.now(ctx)
		return leader != nil && leader != than, nil
	})
	return leader, err
}

// stepDown asks another instance to have the leader step down.
func (x *services) stepDown(ctx context.Context, leader *service) error {
	for _, s := range x.all {
		if s != leader && s.runs() {
			return s.api.SM().StepDown(ctx, v1.StepDown{Reason: "the benchmark ends the term of " + leader.name})
		}
	}
	return errors.New("no other instance runs")
}

// populate writes the records of some members, and has the service run until it has little
// work and all are admitted, by its own records. It returns what it wrote of one.
func (x *services) populate(ctx context.Context, members []int, like *alike) (*alike, error) {
	if err := x.ground.admitted(ctx, x.first.state(), members, like); err != nil {
		return nil, err
	}
	for {
		if err := x.first.start(); err != nil {
			return nil, err
		}
		if err := x.idle(ctx); err != nil {
			return nil, err
		}
		x.first.stop()
		n, like, err := complete(ctx, x.first.state())
		if err != nil || n == len(members) {
			return like, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%d of %d hosts are admitted: %w", n, len(members), context.Cause(ctx))
		}
	}
}

// idle waits until the first instance leads a settled fabric and has little work.
func (x *services) idle(ctx context.Context) error {
	const (
		rest   = 2 * time.Second
		little = 0.5 // CPU seconds in rest
	)
	for worked := 0.0; ; {
		busy, err := cpuOf(x.first.process.PID())
		if err != nil {
			return errors.Join(err, x.first.process.Ended())
		}
		if x.first.ready(ctx, "sm") && x.now(ctx) != nil && busy-worked < little {
			return nil
		}
		worked = busy
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return fmt.Errorf("wait for an idle service: %w", context.Cause(ctx))
		}
	}
}

func (x *services) stop() {
	for _, s := range x.all {
		s.stop()
	}
}
