package apitest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/ca"
	"portcullis/api/credential"
	"portcullis/api/inventory/layout"
	"portcullis/api/limit"
	"portcullis/api/servercert"
	"portcullis/api/store"
	"portcullis/api/store/memory"
)

// Server is the real API over TLS on a loopback address.
type Server struct {
	API *api.Server
	URL string // https://127.0.0.1:PORT

	CAFile       string // PEM of the CA that issued its certificate
	OperatorFile string // operator token, one line
	ViewerFile   string

	Operator, Viewer string // the same tokens

	// Stop ends the server as the end of the test does; it returns the error that serving ended with.
	Stop func() error
}

// Served is what a server answers from.
type Served interface {
	Parts() (api.Backend, api.Tenancy)
}

// Real has a server answer from a service that really decides.
type Real struct{ *admission.Service }

// Parts implements Served.
func (r Real) Parts() (api.Backend, api.Tenancy) {
	return api.Backend{
		Attestation: r.Attestation(), Inventory: r.Inventory(), Layout: r.Layout(), Lifecycle: r.Service, Brakes: r.Service, Reviews: r.Service, State: r.Service,
		Labels: api.Labels{Hosts: admission.HostLabels(r.Service), Clusters: r.Tenancy().ClusterLabels(), Tenants: r.Tenancy().TenantLabels()},
	}, r.Tenancy()
}

// Parts implements Served.
func (b *Backend) Parts() (api.Backend, api.Tenancy) {
	return api.Backend{Attestation: b, Inventory: b, Layout: layout.New(store.New(memory.New(time.Now), "")), Lifecycle: b, Brakes: b, Reviews: b, State: b, Labels: b.labels()}, b
}

// Options returns api.Options for b with a discarding log, one token for each role, and the default
// limits but that of refusals: a test is refused as often as it likes.
func Options(b Served) (o api.Options, operator, viewer string, err error) {
	operator, operatorDigest := credential.New()
	viewer, viewerDigest := credential.New()
	tokens, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, `tokens:
  - {name: olga, role: operator, sha256: %s}
  - {name: vic, role: viewer, sha256: %s}
`, operatorDigest, viewerDigest))
	limits := api.DefaultLimits()
	limits.Refusals = limit.Rate{PerSecond: 1e6, Burst: 1e6}
	backend, clusters := b.Parts()
	o = api.Options{
		Backend: backend, Tenancy: clusters, Tokens: tokens, ChannelBinding: api.ChannelRequired, Limits: limits,
		Version: "v0.0.0-test", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewPedanticRegistry(),
	}
	if p, ok := b.(interface{ Planner() api.Planner }); ok {
		o.Planner = p.Planner()
	}
	return o, operator, viewer, err
}

// Start serves b until the test ends. Each of edit may change the options
// before.
func Start(t testing.TB, b Served, edit ...func(*api.Options)) *Server {
	t.Helper()
	o, operator, viewer, err := Options(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(&o)
	}
	dir := t.TempDir()
	s := &Server{
		API: api.New(o), Operator: operator, Viewer: viewer,
		CAFile:       filepath.Join(dir, "ca.pem"),
		OperatorFile: filepath.Join(dir, "operator.token"),
		ViewerFile:   filepath.Join(dir, "viewer.token"),
	}
	s.write(t, s.OperatorFile, []byte(operator+"\n"))
	s.write(t, s.ViewerFile, []byte(viewer+"\n"))
	s.serve(t, s.certificate(t, dir))
	return s
}

func (s *Server) certificate(t testing.TB, dir string) *servercert.Certificate {
	t.Helper()
	root, err := ca.New("apitest CA", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	rootPair, err := root.PEM()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.IssueServer([]string{"127.0.0.1", "localhost", "portcullis.test"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, s.CAFile, rootPair.Cert)
	certFile, keyFile := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	s.write(t, certFile, pair.Cert)
	s.write(t, keyFile, pair.Key)
	cert, err := servercert.Load(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (s *Server) serve(t testing.TB, cert *servercert.Certificate) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.URL = "https://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.API.Serve(ctx, l, cert) }()
	s.Stop = sync.OnceValue(func() error { stop(); return <-done })
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

func (s *Server) write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
