package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	span "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"portcullis/agent"
	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// otlpServer is a collector of OpenTelemetry. It takes what has the header, decodes it with the messages of the protocol, and can
// hang.
type otlpServer struct {
	*httptest.Server
	secret string

	mu    sync.Mutex
	hangs chan struct{} // nil: it answers
	spans []*span.Span
	about string // of the resource
	raw   []byte
	wrong []string
}

func newOTLPServer(t *testing.T, secret string) *otlpServer {
	t.Helper()
	s := &otlpServer{secret: secret}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(func() { s.hang(false); s.Close() })
	return s
}

// hang has the server answer no more, or again.
func (s *otlpServer) hang(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangs != nil {
		close(s.hangs)
		s.hangs = nil
	}
	if on {
		s.hangs = make(chan struct{})
	}
}

func (s *otlpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hangs := s.hangs
	s.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
		return
	}
	err := s.take(r)
	if err != nil {
		s.mu.Lock()
		s.wrong = append(s.wrong, err.Error())
		s.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (s *otlpServer) take(r *http.Request) error {
	if r.URL.Path != "/v1/traces" || r.Header.Get("X-Api-Key") != s.secret || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("request %s with %v", r.URL, r.Header)
	}
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	var req collect.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = append(s.raw, body...)
	for _, res := range req.GetResourceSpans() {
		s.about = fmt.Sprint(res.GetResource())
		for _, scope := range res.GetScopeSpans() {
			s.spans = append(s.spans, scope.GetSpans()...)
		}
	}
	return nil
}

// trace waits for the trace of a name and a host, and returns its spans by name of the parent and own name.
func (s *otlpServer) trace(t *testing.T, name, host string) (root *span.Span, below map[string][]*span.Span) {
	t.Helper()
	eventually(t, "a trace of the "+name+" of "+host, func() (bool, string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, sp := range s.spans {
			if sp.GetName() == name && textOf(sp, "portcullis.host") == host {
				root = sp
			}
		}
		return root != nil, fmt.Sprint(len(s.spans), s.wrong)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	byID := map[string]*span.Span{}
	below = map[string][]*span.Span{}
	for _, sp := range s.spans {
		if bytes.Equal(sp.GetTraceId(), root.GetTraceId()) {
			byID[string(sp.GetSpanId())] = sp
		}
	}
	for _, sp := range s.spans { // in the order in which they ended, which is that of siblings
		if parent := byID[string(sp.GetParentSpanId())]; parent != nil {
			below[parent.GetName()] = append(below[parent.GetName()], sp)
			if sp.GetStartTimeUnixNano() < parent.GetStartTimeUnixNano() || sp.GetEndTimeUnixNano() > parent.GetEndTimeUnixNano() || sp.GetEndTimeUnixNano() < sp.GetStartTimeUnixNano() {
				t.Errorf("span %s is not within %s: %v, %v", sp.GetName(), parent.GetName(), sp, parent)
			}
		}
	}
	return root, below
}

func textOf(s *span.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			if n := a.GetValue().GetIntValue(); n != 0 {
				return fmt.Sprint(n)
			}
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

func spanNames(list []*span.Span) (out []string) {
	for _, s := range list {
		out = append(out, s.GetName())
	}
	return out
}

// TestTraces: an admission and a release of a host with a real TPM reach a collector as two traces, as parts of those of the requests
// that ordered them. What the host sends is a link. Nothing secret is in them. No admission waits for a collector that hangs.
func TestTraces(t *testing.T) {
	t.Parallel()
	vendor := tpmtest.ShortDir(t)
	tpmtest.Require(t)
	const secret = "key-of-the-collector"
	to := newOTLPServer(t, secret)
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	h1 := newMachine(t, vendor, &machine{id: "h1", nodeGUID: 0x200000, place: "0x100000/1", route: "0,1,1", onLeaf: "1"})
	h2 := newMachine(t, vendor, &machine{id: "h2", nodeGUID: 0x300000, place: "0x100000/2", route: "0,1,2", onLeaf: "2"})
	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	configure(t, dir, h1)
	write(t, filepath.Join(dir, "collector.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw})))
	write(t, filepath.Join(dir, "collector.headers"), "X-Api-Key: "+secret+"\n")
	edit(t, dir, map[string]string{
		`  endpoint: ""`: fmt.Sprintf("  endpoint: %q", to.URL+"/v1/traces"),
		`  headers: ""`:  "  headers: collector.headers",
		// The section of traces is the last one with these keys.
		"  # Authorities of the collector's certificate, in PEM form. Empty: those of the system.\n  ca: \"\"": "  ca: collector.pem",
	})
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	h1.serve(dir, address)
	h2.serve(dir, address)
	trustBoots(t, c, c, h1)
	_, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: "hosts:\n" + h1.inventory() + h2.inventory()}}, v1.RepairTicket{}, false)
	if err == nil {
		_, err = c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"})
	}
	if err == nil {
		_, err = c.Clusters().Create(ctx, v1.NewCluster{Name: "acme-1", Tenant: "acme"})
	}
	if err != nil {
		t.Fatal(err)
	}
	const asked, released = "00-11111111111111111111111111111111-2222222222222222-01", "00-33333333333333333333333333333333-4444444444444444-01"
	if _, err := within(t, dir, address, asked).Hosts().Assign(ctx, "h1", v1.Assignment{Cluster: "acme-1"}); err != nil {
		t.Fatal(err)
	}
	own := h1.provisionTraced(t)
	phase(t, c, "h1", v1.PhaseAdmitted)
	root, below := to.trace(t, "admission", "h1")
	if got := fmt.Sprintf("00-%x-%x-01", root.GetTraceId(), root.GetParentSpanId()); got != asked {
		t.Errorf("the admission is part of %s, want %s", got, asked)
	}
	for name, want := range map[string][]string{
		"admission":    {"wait for host", "challenge", "verification", "hand-over", "guards", "memberships", "confirmation"},
		"verification": {"read", "credential", "quote", "statement", "boot", "inventory", "firmware", "adapters", "record"},
		"memberships":  {"port"},
		"port":         {"order", "write and read back"},
	} {
		if got := spanNames(below[name]); !slices.Equal(got, want) {
			t.Errorf("below %s there is %q, want %q", name, got, want)
		}
		for i, sp := range below[name][1:] {
			if before := below[name][i]; name != "memberships" && sp.GetStartTimeUnixNano() != before.GetEndTimeUnixNano() {
				t.Errorf("%s begins at %d, and %s ended at %d", sp.GetName(), sp.GetStartTimeUnixNano(), before.GetName(), before.GetEndTimeUnixNano())
			}
		}
	}
	if took := root.GetEndTimeUnixNano() - root.GetStartTimeUnixNano(); took == 0 || root.GetStatus().GetCode() != span.Status_STATUS_CODE_UNSET {
		t.Errorf("the admission took %d ns, status %v", took, root.GetStatus())
	}
	for key, want := range map[string]string{"portcullis.cluster": "acme-1", "portcullis.tenant": "acme", "portcullis.epoch": "1", "portcullis.outcome": "admitted", "portcullis.phase": "admitted"} {
		if got := textOf(root, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if port := below["memberships"][0]; textOf(port, "portcullis.port.guid") != (h1.nodeGUID+1).String() || !strings.HasSuffix(textOf(port, "portcullis.port.place"), "100000/1") {
		t.Errorf("port %v", port)
	}
	if links := root.GetLinks(); len(links) != 1 || hex.EncodeToString(links[0].GetTraceId()) != own {
		t.Errorf("links %v, want one to the trace %s of the agent", links, own)
	}
	if !strings.Contains(d.lines.String(), "trace_id="+asked[3:35]) && !strings.Contains(d.lines.String(), asked[3:35]) {
		t.Error("the log does not name the trace")
	}

	if _, err := within(t, dir, address, released).Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h1"); err != nil {
		t.Fatal(err)
	}
	root, below = to.trace(t, "release", "h1")
	if got := fmt.Sprintf("00-%x-%x-01", root.GetTraceId(), root.GetParentSpanId()); got != released || len(below) != 0 {
		t.Errorf("the release is part of %s, want %s; below it %v", got, released, below)
	}
	if textOf(root, "portcullis.cluster") != "acme-1" || textOf(root, "portcullis.outcome") != "released" || len(root.GetLinks()) != 0 {
		t.Errorf("release %v", root)
	}
	to.nothingSecret(t, dir, h1, secret)
	eventually(t, "a count of spans", func() (bool, string) {
		text := fetch(t, dir, address, "/metrics")
		m := regexp.MustCompile(`portcullis_trace_spans_total\{result="exported"\} (\d+)`).FindStringSubmatch(text)
		return m != nil && m[1] == fmt.Sprint(len(to.spans)), fmt.Sprint(m, len(to.spans))
	})

	to.hang(true)
	if _, err := c.Hosts().Assign(ctx, "h2", v1.Assignment{Cluster: "acme-1"}); err != nil {
		t.Fatal(err)
	}
	h2.provision(t)
	phase(t, c, "h2", v1.PhaseAdmitted)
	d.stop() // does not wait for the collector either
	if strings.Contains(d.lines.String(), secret) {
		t.Error("the log shows a header")
	}
}

// nothingSecret holds all that was sent against what no collector may have.
func (s *otlpServer) nothingSecret(t *testing.T, dir string, m *machine, more ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	token, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	ek := m.tpm.EKDigest()
	raw, err2 := hex.DecodeString(ek)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(more, strings.TrimSpace(string(token)), ek, string(raw), "token", "nonce", "m_key") {
		if bytes.Contains(s.raw, []byte(secret)) {
			t.Errorf("spans hold %q", secret)
		}
	}
	if len(s.wrong) != 0 || !strings.Contains(s.about, "portcullisd") {
		t.Errorf("refused requests %q, resource %s", s.wrong, s.about)
	}
}

// within returns a client whose requests are part of a trace.
func within(t *testing.T, dir, address, traceparent string) *client.Client {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "https://" + address, CA: ca, Token: strings.TrimSpace(string(token)), Traceparent: traceparent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// provisionTraced runs the agent and returns the trace that its log names in each line.
func (m *machine) provisionTraced(t *testing.T) string {
	t.Helper()
	var log lines
	err := agent.Provision(t.Context(), agent.Options{Config: m.config, Version: "test", Log: slog.New(slog.NewTextHandler(io.MultiWriter(&log, t.Output()), nil))})
	if err != nil {
		t.Fatalf("provision %s: %v", m.id, err)
	}
	found := regexp.MustCompile(`trace_id=([0-9a-f]{32})\b`).FindAllStringSubmatch(log.String(), -1)
	if len(found) == 0 || len(found) != strings.Count(log.String(), "\n") || !regexp.MustCompile(`"the run is over".* after=\d`).MatchString(log.String()) {
		t.Fatalf("the log of the agent does not name its trace in each line:\n%s", &log)
	}
	return found[0][1]
}
