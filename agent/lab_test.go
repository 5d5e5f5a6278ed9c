package agent_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/agent"
	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/hostca"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
)

// lab is a host with a real TPM and a service that speaks the real API, with
// a wire between them that can be cut.
type lab struct {
	t       *testing.T
	tpm     *tpmtest.TPM
	backend *apitest.Backend
	wire    *wire
	config  agent.Config
	expect  attest.Expected
	policy  *attest.Policy

	hosts *hostca.Service // nil: the service certifies no keys

	// after runs when evidence was accepted; it plays admission.
	after func()
	// onLog sees every progress message of the agent.
	onLog func(msg string)

	mu         sync.Mutex // guards what follows
	challenges map[string]*attest.Challenge
	seals      map[string]*attest.SealChallenge
	verdicts   []attest.Verdict
	sealed     []*attest.Refusal // outcome of each seal; nil: accepted
	begun      []error
	notified   []string
	keys       []*attest.HostKey // that came with seals; nil: none
	token      string            // status token given last
	forgets    bool              // certificates do not stand in the host's record
}

func (l *lab) lastToken() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

const base = 0x0002_c903_00ab_0000

func newLab(t *testing.T, edit ...func(*api.Options)) *lab {
	t.Helper()
	l := &lab{t: t, tpm: tpmtest.New(t, tpmtest.Options{}), backend: apitest.NewBackend(), challenges: map[string]*attest.Challenge{}, seals: map[string]*attest.SealChallenge{}}
	l.policy = attest.DefaultPolicy()
	l.policy.Assurance, l.policy.RequireLock = attest.AssuranceNone, false // only sysfs reports the adapter
	roots, err := l.tpm.RootsPEM()
	must(t, err)
	must(t, l.policy.AddCertificates(roots))
	l.expect = attest.Expected{
		Host: "compute-01", EKDigest: l.tpm.EKDigest(), Class: reference.DefaultClass, References: attesttest.References(),
		HCAs: []attest.ExpectedHCA{{NodeGUID: base, SystemImageGUID: base, Ports: []attest.ExpectedPort{{Num: 1, GUID: base + 1}}}},
	}
	l.after = func() { l.setPhase(v1.PhaseAdmitted) }
	l.backend.OnSession, l.backend.OnEvidence, l.backend.OnSeal = l.begin, l.verify, l.seal
	l.setPhase(v1.PhaseAwaiting)
	server := apitest.Start(t, l.backend, edit...)
	l.wire = newWire(t, strings.TrimPrefix(server.URL, "https://"))

	dir := t.TempDir()
	l.config = agent.DefaultConfig()
	l.config.Service, l.config.CA, l.config.Host = "https://"+l.wire.addr(), server.CAFile, "compute-01"
	l.config.TPM, l.config.Timeout = l.tpm.Device(), 30*time.Second
	l.config.Sysfs, l.config.Procfs = filepath.Join(dir, "sys"), filepath.Join(dir, "proc")
	l.config.StateDir = filepath.Join(dir, "state")
	l.plant("28.43.1014")
	must(t, l.tpm.PlantEventLog(l.config.Sysfs))
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plant writes the kernel's trees of the host.
func (l *lab) plant(firmware string) {
	l.t.Helper()
	guid := func(g ib.GUID) string { return strings.TrimPrefix(ib.MakeGID(0, g).String(), "::") }
	for name, data := range map[string]string{
		"proc/sys/kernel/random/boot_id":             "3a6e2f4b-7c1d-4f6e-9a3b-0d5c8e7f1a2b",
		"sys/class/infiniband/mlx5_0/node_guid":      fmt.Sprintf("%04x:%04x:%04x:%04x", base>>48, base>>32&0xffff, base>>16&0xffff, base&0xffff),
		"sys/class/infiniband/mlx5_0/sys_image_guid": fmt.Sprintf("%04x:%04x:%04x:%04x", base>>48, base>>32&0xffff, base>>16&0xffff, base&0xffff),
		"sys/class/infiniband/mlx5_0/board_id":       "MT_0000000838",
		"sys/class/infiniband/mlx5_0/fw_ver":         firmware,
		"sys/class/infiniband/mlx5_0/hca_type":       "MT4129",

		"sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
		"sys/class/infiniband/mlx5_0/ports/1/gids/0":     "fe80::" + guid(base+1),
	} {
		path := filepath.Join(filepath.Dir(l.config.Sysfs), name)
		must(l.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(l.t, os.WriteFile(path, []byte(data+"\n"), 0o644))
	}
}

func (l *lab) setPhase(p v1.Phase, guards ...v1.Guard) {
	l.backend.SetHost(v1.Host{ID: "compute-01", Cluster: "train", Status: v1.HostStatus{Phase: p, Guards: guards}})
}

// begin is the service's side of a session.
func (l *lab) begin(req *attest.SessionRequest) (*attest.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch, s, err := attest.Begin(rand.Reader, time.Now(), req, l.expect, l.policy)
	l.begun = append(l.begun, err)
	if err == nil {
		l.challenges[ch.ID] = ch
	}
	return s, err
}

// verify is the service's side of evidence.
func (l *lab) verify(id string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	l.mu.Lock()
	ch := l.challenges[id]
	delete(l.challenges, id)
	v := attest.Verify(time.Now(), ch, channel, ev, l.expect, l.policy)
	l.verdicts = append(l.verdicts, v)
	l.mu.Unlock()
	if !v.OK {
		return nil, &attest.Refusal{Code: v.Code, Detail: v.Detail}
	}
	sc, seal, err := attest.BeginSeal(rand.Reader, time.Now(), ch, &v.Facts, l.policy)
	if err != nil {
		return nil, err
	}
	seal.HostKey = l.hosts != nil
	l.mu.Lock()
	l.seals[id] = sc
	l.mu.Unlock()
	token := fmt.Sprintf("%064x", len(l.verdicts))
	l.backend.SetStatusToken(token, "compute-01")
	l.mu.Lock()
	l.token = token
	l.mu.Unlock()
	l.setPhase(v1.PhaseVerified)
	l.after()
	return &v1.AttestResult{Host: "compute-01", Phase: v1.PhaseVerified, StatusToken: token, Seal: seal}, nil
}

// seal is the service's side of a hand-over.
func (l *lab) seal(id string, channel []byte, ev *attest.SealEvidence) (*v1.SealResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sc := l.seals[id]
	delete(l.seals, id)
	_, _, no := attest.VerifySeal(time.Now(), sc, channel, ev, l.policy)
	l.sealed = append(l.sealed, no)
	if no != nil {
		return nil, no
	}
	return l.certify(sc, channel, ev.HostKey)
}

// Notify implements agent.Notifier.
func (l *lab) Notify(state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notified = append(l.notified, state)
}

func (l *lab) provision() error {
	return agent.Provision(l.t.Context(), agent.Options{
		Config: l.config, Version: "v1-test", Notify: l, Log: slog.New(&watcher{Handler: slog.NewTextHandler(l.t.Output(), nil), l: l}),
	})
}

// watcher shows a test the agent's progress.
type watcher struct {
	slog.Handler
	l *lab
}

func (w *watcher) Handle(ctx context.Context, r slog.Record) error {
	if w.l.onLog != nil {
		w.l.onLog(r.Message)
	}
	return w.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (w *watcher) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &watcher{Handler: w.Handler.WithAttrs(attrs), l: w.l}
}

// wire forwards connections to the service while it is up.
type wire struct {
	listener net.Listener
	to       string
	mu       sync.Mutex // guards what follows
	up       bool
	open     []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{listener: listener, to: to, up: true}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go w.forward(c)
		}
	}()
	t.Cleanup(func() { listener.Close(); w.cut(); <-done })
	return w
}

func (w *wire) addr() string { return w.listener.Addr().String() }

func (w *wire) forward(c net.Conn) {
	defer c.Close()
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer server.Close()
	w.mu.Lock()
	w.open = append(w.open, c, server)
	up := w.up
	w.mu.Unlock()
	if !up {
		return
	}
	go func() { defer c.Close(); defer server.Close(); _, _ = io.Copy(server, c) }()
	_, _ = io.Copy(c, server)
}

// cut ends every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		c.Close()
	}
	w.open = nil
}

func (w *wire) set(up bool) {
	w.mu.Lock()
	w.up = up
	w.mu.Unlock()
}
