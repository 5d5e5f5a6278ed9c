package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	span "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"portcullis/api/trace"
	"portcullis/api/tracecontext"
	"portcullis/fabricsm/ib"
)

const (
	patience = 20 * time.Second
	secret   = "the-key-of-the-collector"
)

// lab is an Exporter, and a collector that answers as the test wants.
type lab struct {
	*Exporter
	log *safeBuffer

	mu    sync.Mutex
	asked int
	spans []*span.Span
}

// safeBuffer is a buffer that goroutines share.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newLab(t *testing.T, sample float64, answer http.HandlerFunc) *lab {
	t.Helper()
	l := &lab{log: &safeBuffer{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.asked++
		l.mu.Unlock()
		if r.Header.Get("X-Key") != secret {
			t.Errorf("headers %v", r.Header)
		}
		if answer != nil {
			answer(w, r)
			return
		}
		unpacked, err := gzip.NewReader(r.Body)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(unpacked)
		}
		var req collect.ExportTraceServiceRequest
		if err = errors.Join(err, proto.Unmarshal(body, &req)); err != nil {
			t.Errorf("request: %v", err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, res := range req.GetResourceSpans() {
			for _, scope := range res.GetScopeSpans() {
				l.spans = append(l.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(s.Close)
	var err error
	l.Exporter, err = New(Options{
		URL: s.URL + "/v1/traces", Sample: sample, Version: "v1", Log: slog.New(slog.NewTextHandler(l.log, nil)),
		Headers: []Header{{Name: "X-Key", Value: ib.NewSecretText(secret)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run runs the Exporter, and returns what ends it and waits for that.
func (l *lab) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the exporter does not end")
		}
	}
	t.Cleanup(stop)
	return stop
}

func (l *lab) await(t *testing.T, what string, cond func(c Counts) bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !cond(l.Counts()) {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not come about: %+v", what, l.Counts())
		}
	}
}

func (l *lab) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// sample returns a trace of three spans.
func sample(id byte) *trace.Trace {
	end := start.Add(4 * time.Second)
	return &trace.Trace{ID: [16]byte{15: id}, Root: trace.Span{
		Name: "admission", Start: start, End: end, Failed: "released",
		Attributes: []trace.Attribute{{Key: "text", Text: strings.Repeat("x", 1000)}, {Key: "number", Number: 7}},
		Events:     []trace.Event{{Name: "refused", Time: start.Add(time.Second), Attributes: []trace.Attribute{{Key: "reason", Text: "pcr"}}}},
		Children:   []trace.Span{{Name: "a", Start: start, End: end, Children: []trace.Span{{Name: "b", Start: start.Add(time.Second), End: end}}}},
	}}
}

// TestTree: spans arrive with their parents, times, attributes, events and outcome; texts are bounded. A second exporter makes the
// same ids.
func TestTree(t *testing.T) {
	t.Parallel()
	var first []*span.Span
	for range 2 {
		l := newLab(t, 1, nil)
		l.run(t)
		if id := l.Export(t.Context(), sample(9)); id != strings.Repeat("0", 31)+"9" {
			t.Errorf("trace %s", id)
		}
		l.await(t, "three spans", func(c Counts) bool { return c.Exported == 3 })
		if first == nil {
			first = l.spans
			continue
		}
		for i := range first {
			if !proto.Equal(first[i], l.spans[i]) {
				t.Errorf("two exporters send %v and %v", first[i], l.spans[i])
			}
		}
	}
	b, a, root := first[0], first[1], first[2]
	if root.GetName() != "admission" || len(root.GetParentSpanId()) != 0 || !bytes.Equal(a.GetParentSpanId(), root.GetSpanId()) || !bytes.Equal(b.GetParentSpanId(), a.GetSpanId()) ||
		bytes.Equal(a.GetSpanId(), b.GetSpanId()) {
		t.Errorf("tree %v", first)
	}
	if root.GetStartTimeUnixNano() != uint64(start.UnixNano()) || b.GetEndTimeUnixNano() != uint64(start.Add(4*time.Second).UnixNano()) {
		t.Errorf("times of %v and %v", root, b)
	}
	if st := root.GetStatus(); st.GetCode() != span.Status_STATUS_CODE_ERROR || st.GetMessage() != "released" || a.GetStatus().GetCode() != span.Status_STATUS_CODE_UNSET {
		t.Errorf("status %v", st)
	}
	if at := root.GetAttributes(); len(at) != 2 || len(at[0].GetValue().GetStringValue()) != maxText || at[1].GetValue().GetIntValue() != 7 {
		t.Errorf("attributes %v", at)
	}
	if ev := root.GetEvents(); len(ev) != 1 || ev[0].GetName() != "refused" || ev[0].GetTimeUnixNano() != uint64(start.Add(time.Second).UnixNano()) || len(ev[0].GetAttributes()) != 1 {
		t.Errorf("events %v", ev)
	}
}

// TestParents: an operator's span becomes the parent and decides on sampling; a host's is a link and decides on nothing.
func TestParents(t *testing.T) {
	t.Parallel()
	l := newLab(t, 0, nil)
	l.run(t)
	other := tracecontext.Parent{Trace: [16]byte{1}, Span: [8]byte{2}, Sampled: true}
	not := other
	not.Sampled = false
	for _, t2 := range []struct{ parent, link tracecontext.Parent }{{link: other}, {parent: not, link: other}, {}} {
		tr := sample(1)
		tr.Parent, tr.Link = t2.parent, t2.link
		l.Export(t.Context(), tr)
	}
	tr := sample(2)
	tr.Parent, tr.Link = other, tracecontext.Parent{Trace: [16]byte{7}, Span: [8]byte{8}}
	if id := l.Export(t.Context(), tr); id != "01"+strings.Repeat("0", 30) {
		t.Errorf("trace %s, want the operator's", id)
	}
	l.await(t, "one trace", func(c Counts) bool { return c.Exported == 3 })
	l.mu.Lock()
	defer l.mu.Unlock()
	root := l.spans[2]
	if len(l.spans) != 3 || !bytes.Equal(root.GetParentSpanId(), other.Span[:]) || !bytes.Equal(root.GetTraceId(), other.Trace[:]) {
		t.Errorf("spans %v", l.spans)
	}
	if links := root.GetLinks(); len(links) != 1 || links[0].GetTraceId()[0] != 7 || len(l.spans[0].GetLinks()) != 0 {
		t.Errorf("links %v", root.GetLinks())
	}
}

// TestSampling: the share of traces that is sent is that of the configuration.
func TestSampling(t *testing.T) {
	t.Parallel()
	l := newLab(t, 0.25, nil)
	n := 0
	for i := range 1000 {
		tr := sample(0)
		tr.ID = [16]byte{8: byte(i * 67), 9: byte(i), 15: 1} // the ids of package trace are digests
		l.Export(t.Context(), tr)
	}
	for len(l.queue) > 0 {
		<-l.queue
		n++
	}
	if n < 3*150 || n > 3*350 || n%3 != 0 {
		t.Errorf("%d spans of 3000 are sent, want a quarter", n)
	}
}

// TestCollectorFails: spans that a collector does not take are counted and forgotten, the log says so once, and shows nothing secret
// of what the collector answers. It says once when the collector takes them again.
func TestCollectorFails(t *testing.T) {
	t.Parallel()
	var good sync.Map
	l := newLab(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if _, on := good.Load("on"); !on {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "%s is wrong %s", r.Header.Get("X-Key"), strings.Repeat("x", 1000))
		}
	})
	l.run(t)
	for n := range 3 {
		l.Export(t.Context(), sample(1))
		l.await(t, "failure", func(c Counts) bool { return c.Failed == uint64(3*(n+1)) })
	}
	good.Store("on", true)
	l.Export(t.Context(), sample(1))
	l.await(t, "success", func(c Counts) bool { return c.Exported == 3 })
	l.Export(t.Context(), sample(1))
	l.await(t, "success", func(c Counts) bool { return c.Exported == 6 })
	text := l.log.String()
	if strings.Count(text, "takes no traces") != 1 || strings.Count(text, "takes traces again") != 1 || strings.Contains(text, secret) || !strings.Contains(text, "(secret) is wrong") || len(text) > 1000 {
		t.Errorf("log of %d bytes:\n%.3000s", len(text), text)
	}
}

// TestRedirect: what authenticates requests goes to no other server.
func TestRedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked with %v", r.Header) }))
	t.Cleanup(other.Close)
	l := newLab(t, 1, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	l.run(t)
	l.Export(t.Context(), sample(1))
	l.await(t, "failure", func(c Counts) bool { return c.Failed == 3 })
}

// TestCollectorHangs: no caller waits for a collector that does not answer. Memory is bounded, what does not fit is counted, and the end
// of the service does not wait either.
func TestCollectorHangs(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	l := newLab(t, 1, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(hang) })
	stop := l.run(t)
	l.Export(t.Context(), sample(1))
	l.await(t, "request", func(Counts) bool { return l.requests() > 0 })
	began := time.Now()
	const traces = 5000
	for range traces {
		l.Export(t.Context(), sample(1))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d traces took %v to hand over", traces, took)
	}
	if c := l.Counts(); c.Dropped != 3*traces-queueSize || c.Exported != 0 {
		t.Errorf("counts %+v, want %d dropped", c, 3*traces-queueSize)
	}
	began = time.Now()
	stop()
	if took := time.Since(began); took > lastChance+5*time.Second {
		t.Errorf("the end took %v", took)
	}
	if c := l.Counts(); c.Failed != queueSize+3 {
		t.Errorf("counts %+v: want each span to be counted", c)
	}
}

// TestLastChance: what waits at the end is sent.
func TestLastChance(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, nil)
	l.Export(t.Context(), sample(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Run(ctx)
	if c := l.Counts(); c.Exported != 3 {
		t.Errorf("counts %+v", c)
	}
}

// TestDown: a collector that refuses connections fails like any other.
func TestDown(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	e, err := New(Options{URL: s.URL + "/v1/traces", Sample: 1, Version: "v1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Exporter: e}
	l.Export(t.Context(), sample(1))
	l.run(t)
	l.await(t, "failure", func(c Counts) bool { return c.Failed == 3 })
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"https://collector:4318/v1/traces": true, "http://127.0.0.1:4318/v1/traces": true, "http://[::1]:4318/v1/traces": true, "https://c/x": true,
		"http://collector:4318/v1/traces": false, "http://localhost:4318/v1/traces": false, "https://collector:4318": false, "https://collector:4318/": false,
		"https://u:p@collector/v1/traces": false, "https://c/v1/traces?key=1": false, "https://c/v1/traces#x": false, "https://c:0/v1": false, "https://c:/v1": false,
		"grpc://c:4317/v1": false, "": false, "c:4318/v1/traces": false, "https:///v1/traces": false, "https://c/" + strings.Repeat("x", 2048): false,
	} {
		if err := CheckURL(text); (err == nil) != good || err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%.60q: %v, want good %v", text, err, good)
		}
	}
	nan := 0.0
	for share, good := range map[float64]bool{0: true, 1: true, 0.5: true, -0.1: false, 1.1: false, nan / nan: false} {
		if err := CheckSample(share); (err == nil) != good {
			t.Errorf("%v: %v, want good %v", share, err, good)
		}
	}
	if _, err := New(Options{URL: "https://c", Sample: 2}); err == nil {
		t.Error("bad options are taken")
	}
}
