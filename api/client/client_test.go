package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/client"
	"portcullis/api/idempotency"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

func connect(t *testing.T, s *apitest.Server, token string) *client.Client {
	t.Helper()
	pem, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: s.URL, CA: pem, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestOperator(t *testing.T) {
	b := apitest.NewSite(t)
	s := apitest.Start(t, b)
	c, ctx := connect(t, s, s.Operator), t.Context()
	files := []v1.InventoryFile{{Name: "rack.yaml", Content: b.Inventory("h1", "h2")}}

	report, err := c.Inventory().Import(ctx, files, v1.RepairTicket{}, true)
	if err != nil || !report.DryRun || len(report.Added) != 2 {
		t.Fatalf("dry run: %+v, %v", report, err)
	}
	if hosts, err := c.Hosts().All(ctx); err != nil || len(hosts) != 0 {
		t.Fatalf("after a dry run: %v, %v; want no hosts", hosts, err)
	}
	if _, err := c.Inventory().Import(ctx, files, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	cluster, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "train", Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Clusters().Get(ctx, "train"); err != nil || cmp.Diff(got, cluster) != "" {
		t.Errorf("Cluster = %+v, %v; want %+v", got, err, cluster)
	}
	h, err := c.Hosts().Assign(ctx, "h1", v1.Assignment{Cluster: "train"})
	if err != nil || h.Status.Phase != v1.PhaseAwaiting || h.Tenant != "acme" {
		t.Errorf("Assign = %+v, %v", h, err)
	}
	err = c.Clusters().Delete(ctx, "train")
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Status != 428 || p.Code != v1.CodeVersionMissing || !strings.Contains(p.Hint, "GET /v1/clusters/train") {
		t.Errorf("DeleteCluster without a version = %+v, want the problem version_missing", p)
	}
	err = c.Clusters().Delete(client.IfMatch(ctx, cluster.Version), "train")
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Status != 409 || p.Code != "cluster_in_use" || p.Hint == "" {
		t.Errorf("DeleteCluster = %v, want the problem cluster_in_use", err)
	}
	b.Place("h1")
	b.Hand("h1")
	b.Program()
	if h, err := c.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h1"); err != nil || h.Status.Phase != v1.PhaseReleasing {
		t.Errorf("Release = %+v, %v", h, err)
	}
	hosts, err := c.Hosts().All(ctx)
	if err != nil || len(hosts) != 2 || hosts[0].ID != "h1" || hosts[1].ID != "h2" {
		t.Errorf("Hosts = %v, %v; want h1 and h2", hosts, err)
	}
	operators := slices.DeleteFunc(b.Actors(), func(actor string) bool { return actor != "olga" })
	if got, want := operators, []string{"olga", "olga", "olga", "olga", "olga", "olga"}; cmp.Diff(got, want) != "" {
		t.Errorf("actors %v, want %v", got, want)
	}
}

func TestProblems(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t))
	ctx := t.Context()
	for _, tt := range []struct {
		name   string
		call   func() error
		status int
		code   string
	}{
		{"no token", func() error { _, err := connect(t, s, "").Hosts().All(ctx); return err }, 401, v1.CodeUnauthenticated},
		{"viewer", func() error {
			_, err := connect(t, s, s.Viewer).Tenants().Create(ctx, v1.NewTenant{Name: "a"})
			return err
		}, 403, v1.CodeForbidden},
		{"unknown host", func() error { _, err := connect(t, s, s.Viewer).Hosts().Get(ctx, "a/../b?c"); return err }, 404, "host_unknown"},
		{"bad name", func() error {
			_, err := connect(t, s, s.Operator).Tenants().Create(ctx, v1.NewTenant{Name: "A"})
			return err
		}, 422, v1.CodeInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := errors.AsType[*v1.Problem](tt.call())
			if !ok || p.Status != tt.status || p.Code != tt.code {
				t.Errorf("got %+v, want status %d and code %s", p, tt.status, tt.code)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    client.Options
		want string // part of the error; "" means accepted
	}{
		{"host", client.Options{URL: "https://fabric.example"}, ""},
		{"slash", client.Options{URL: "https://fabric.example:8443/"}, ""},
		{"plain", client.Options{URL: "http://fabric.example"}, "want https://"},
		{"no scheme", client.Options{URL: "fabric.example:8443"}, "want https://"},
		{"empty", client.Options{}, "want https://"},
		{"password", client.Options{URL: "https://a:b@fabric.example"}, "nothing after the port"},
		{"path", client.Options{URL: "https://fabric.example/v1"}, "nothing after the port"},
		{"empty CA file", client.Options{URL: "https://x", CA: []byte{}}, "no PEM certificate"},
		{"CA", client.Options{URL: "https://x", CA: []byte("not PEM")}, "no PEM certificate"},
		{"token", client.Options{URL: "https://x", Token: "a\r\nHost: evil"}, "one word"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := client.New(tt.o)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCAIsPinned(t *testing.T) {
	s, other := apitest.Start(t, apitest.NewSite(t)), apitest.Start(t, apitest.NewSite(t))
	s.CAFile = other.CAFile
	if _, err := connect(t, s, s.Viewer).Hosts().All(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a service with another CA: %v, want a refusal of its certificate", err)
	}
	if _, err := connect(t, s, "").OpenChannel(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("OpenChannel to a service with another CA: %v, want a refusal of its certificate", err)
	}
}

// An answer that is not the service's own, for example a proxy's page, or a
// redirect that would carry the token away, is an error that says so.
func TestForeignAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"page", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", 502) }, "not a Portcullis problem"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://evil.example/", 302) }, "302"},
		{"truncated", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"items":[`) }, "read the answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewTLSServer(tt.handler)
			t.Cleanup(srv.Close)
			c, err := client.New(client.Options{URL: srv.URL, CA: pemOf(srv.Certificate().Raw), Token: "t"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			if _, err := c.Hosts().All(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Hosts = %v, want %q", err, tt.want)
			}
		})
	}
}

// watched closes a channel when the first watch ends.
type watched struct {
	api.Lifecycle
	ended chan struct{}
}

func (w watched) Watch(ctx context.Context, host string) (<-chan *v1.Host, error) {
	hosts, err := w.Lifecycle.Watch(ctx, host)
	if err == nil {
		context.AfterFunc(ctx, func() { close(w.ended) })
	}
	return hosts, err
}

func TestWatch(t *testing.T) {
	b := apitest.NewSite(t)
	ended := make(chan struct{})
	s := apitest.Start(t, b, func(o *api.Options) { o.Backend.Lifecycle = watched{o.Backend.Lifecycle, ended} })
	b.Register("h1")
	b.Join("h1")
	b.Place("h1")
	b.Hand("h1")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []v1.Phase
	for h, err := range connect(t, s, s.Viewer).Hosts().Watch(ctx, "h1") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Status.Phase)
		if h.Status.Phase == v1.PhaseAdmitted {
			break
		}
		if len(got) == 1 {
			b.Program()
		}
	}
	if d := cmp.Diff(slices.Compact(got), []v1.Phase{v1.PhaseGranting, v1.PhaseAdmitted}); d != "" {
		t.Errorf("phases (-got +want):\n%s", d)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("the watch goes on after the client went away")
	}
	for _, err := range connect(t, s, s.Viewer).Hosts().Watch(ctx, "none") {
		if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Status != 404 {
			t.Errorf("watch of an unknown host: %v, want 404", err)
		}
	}
}

// A service that stops does not wait for watchers.
func TestWatchEndsWithTheService(t *testing.T) {
	b := apitest.NewSite(t)
	s := apitest.Start(t, b)
	b.Register("h1")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stopped := make(chan error, 1)
	var last error
	for _, err := range connect(t, s, s.Viewer).Hosts().Watch(ctx, "h1") {
		if last = err; err == nil {
			go func() { stopped <- s.Stop() }()
		}
	}
	if last == nil || ctx.Err() != nil {
		t.Errorf("watch ended with %v, %v; want an error that the service caused", last, ctx.Err())
	}
	if err := <-stopped; err != nil {
		t.Errorf("the service stopped with %v", err)
	}
}

// spy notes the binding of the connection that evidence or a seal came over last.
type spy struct {
	api.Attestation
	seen []byte
}

// between puts the spy before the service.
func (s *spy) between(o *api.Options) {
	s.Attestation, o.Backend.Attestation = o.Backend.Attestation, s
}

func (s *spy) SubmitEvidence(ctx context.Context, session string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	s.seen = bytes.Clone(channel)
	return s.Attestation.SubmitEvidence(ctx, session, channel, ev)
}

func (s *spy) SubmitSeal(ctx context.Context, session string, channel []byte, source string, ev *attest.SealEvidence) (*v1.SealResult, error) {
	s.seen = bytes.Clone(channel)
	return s.Attestation.SubmitSeal(ctx, session, channel, source, ev)
}

func TestChannel(t *testing.T) {
	b := apitest.NewSite(t)
	b.Register("h1")
	b.Join("h1")
	host, spy := b.Boot("h1"), new(spy)
	s := apitest.Start(t, b, spy.between)
	c, ctx := connect(t, s, ""), t.Context()
	first, err := c.OpenChannel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	session, err := first.OpenSession(ctx, host.Request())
	if err != nil || session.ID == "" {
		t.Fatalf("OpenSession = %+v, %v", session, err)
	}
	ev, err := host.Answer(session, first.Binding())
	if err != nil {
		t.Fatal(err)
	}
	result, err := first.SubmitEvidence(ctx, session.ID, ev)
	if err != nil || result.Host != "h1" || result.Phase != v1.PhaseVerified || result.StatusToken == "" {
		t.Fatalf("SubmitEvidence = %+v, %v", result, err)
	}
	if len(spy.seen) != attest.ExporterSize || !bytes.Equal(spy.seen, first.Binding()) {
		t.Errorf("the service saw channel %x, the client has %x; want the same 32 bytes", spy.seen, first.Binding())
	}

	second, err := c.OpenChannel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seal, err := host.Seal(session, result.Seal, second.Binding())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := second.SubmitSeal(ctx, session.ID, seal)
	if err != nil || sealed.Host != "h1" || sealed.Phase != v1.PhaseVerified || !bytes.Equal(spy.seen, second.Binding()) {
		t.Fatalf("SubmitSeal = %+v, %v", sealed, err)
	}
	if bytes.Equal(first.Binding(), second.Binding()) {
		t.Error("two connections have the same binding")
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := second.OpenSession(ctx, &attest.SessionRequest{Host: "h1"}); err == nil {
		t.Error("a closed channel reconnected")
	}
}

func TestChannelRefusal(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t))
	ch, err := connect(t, s, "").OpenChannel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	_, err = ch.OpenSession(t.Context(), &attest.SessionRequest{Host: "h1", StatementDigests: [][]byte{{1}}, AK1Public: []byte{1}, AK2Public: []byte{2}})
	p, ok := errors.AsType[*v1.Problem](err)
	if !ok || p.Code != v1.CodeEvidenceRefused || strings.Contains(p.Detail, "inventory") {
		t.Errorf("OpenSession = %v, want the uniform refusal", err)
	}
}

func TestAttestStatus(t *testing.T) {
	b := apitest.NewSite(t)
	b.Register("h1")
	b.Join("h1")
	token := b.Attest("h1").Result.StatusToken
	s := apitest.Start(t, b, func(o *api.Options) { o.ChannelBinding = api.ChannelOff })
	c := connect(t, s, "")
	if h, err := c.WithToken(token).AttestStatus(t.Context()); err != nil || h.ID != "h1" {
		t.Errorf("AttestStatus = %+v, %v", h, err)
	}
	if _, err := c.AttestStatus(t.Context()); err == nil {
		t.Error("AttestStatus without a token succeeded")
	}
}

// TestListsFollowPages: a client lists the whole list, whatever a page holds.
func TestListsFollowPages(t *testing.T) {
	b := apitest.NewSite(t)
	file := "hosts:\n"
	for i := range 7 {
		file += fmt.Sprintf("- {id: h%d, rack: r%d, hcas: [{node_guid: 0x%x0, ports: [{port: 1, guid: 0x%x1, cable: 0x1000/%d}]}]}\n", i, i%2, i+1, i+1, i+1)
	}
	b.Import(file)
	s := apitest.Start(t, b)
	c, ctx := connect(t, s, s.Operator), t.Context()
	for limit := range 9 {
		q := v1.HostQuery{Rack: "r0", PageQuery: v1.PageQuery{Limit: limit}}
		full, err := c.Hosts().List(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := c.Hosts().Summaries(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := c.Hosts().IDs(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		var got [3][]string
		for i := range full {
			got[0] = append(got[0], full[i].ID)
		}
		for i := range lines {
			got[1] = append(got[1], lines[i].ID)
		}
		for i := range ids {
			got[2] = append(got[2], ids[i].ID)
		}
		want := []string{"h0", "h2", "h4", "h6"}
		if d := cmp.Diff([3][]string{want, want, want}, got); d != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, d)
		}
	}
	if ids, err := c.Hosts().IDPage(ctx, v1.HostQuery{PageQuery: v1.PageQuery{Limit: 2}}); err != nil || !cmp.Equal(ids, []string{"h0", "h1"}) {
		t.Errorf("one page of ids: %v, %v", ids, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "of-" + name, Tenant: name}); err != nil {
			t.Fatal(err)
		}
	}
	clusters, err := c.Clusters().List(ctx, v1.ClusterQuery{Tenant: "b", PageQuery: v1.PageQuery{Limit: 1}})
	if err != nil || len(clusters) != 1 || clusters[0].Name != "of-b" {
		t.Errorf("clusters of b: %+v, %v", clusters, err)
	}
	if clusters, err := c.Clusters().List(ctx, v1.ClusterQuery{PageQuery: v1.PageQuery{Limit: 2}}); err != nil || len(clusters) != 3 {
		t.Errorf("clusters: %+v, %v", clusters, err)
	}
}

// TestNamedRequests creates a tenant twice under one key: the second time its first answer comes back.
func TestNamedRequests(t *testing.T) {
	b := apitest.NewSite(t)
	s := apitest.Start(t, b, func(o *api.Options) {
		o.Answers = idempotency.New(b.Store, time.Now, idempotency.DefaultRate())
	})
	c := connect(t, s, s.Operator)
	named := client.Named(t.Context(), "8e03978e-40d5-43e8-bc93-6894a57f9324")
	first, err := c.Tenants().Create(named, v1.NewTenant{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Tenants().Create(named, v1.NewTenant{Name: "acme"})
	if err != nil || cmp.Diff(first, again) != "" {
		t.Errorf("the repetition: %+v, %v; want %+v", again, err, first)
	}
	if _, err := c.Tenants().Get(named, "acme"); err != nil {
		t.Errorf("a request that reads: %v", err)
	}
	_, err = c.Tenants().Create(t.Context(), v1.NewTenant{Name: "acme"})
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != "tenant_exists" {
		t.Errorf("without the key: %v, want tenant_exists", err)
	}
}
