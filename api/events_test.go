package api_test

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/events"
	"portcullis/api/events/feed"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/packaging/testenv"
)

// happens has an event about a host recorded.
func happens(t *testing.T, s *store.Store, host string) {
	t.Helper()
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		return events.Record(t.Context(), tx, time.Now(), v1.Event{Type: events.LockChanged, By: events.ByEvidence, Cause: "unlocked", Host: host})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// curl is a client that was not made for this service.
type curl struct {
	t     *testing.T
	lines *bufio.Scanner
	stop  func()
}

func newCurl(t *testing.T, s *apitest.Server, path string, args ...string) *curl {
	t.Helper()
	program := testenv.Program(t, "curl")
	ctx, cancel := context.WithCancel(t.Context())
	args = append([]string{"-sSN", "--cacert", s.CAFile, "-H", "Authorization: Bearer " + s.Viewer, "-H", "Accept: text/event-stream"}, args...)
	cmd := exec.CommandContext(ctx, program, append(args, s.URL+path)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &curl{t, bufio.NewScanner(out), func() { cancel(); _ = cmd.Wait() }}
	t.Cleanup(c.stop)
	return c
}

// next returns the next message: its id, its name, and its data.
func (c *curl) next() (id, event, data string) {
	c.t.Helper()
	for c.lines.Scan() {
		name, value, _ := strings.Cut(c.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			data = value
		case "":
			if data != "" {
				return id, event, data
			}
		}
	}
	c.t.Fatalf("the stream ended: %v", c.lines.Err())
	return "", "", ""
}

func (c *curl) wants(event, part string) (id string) {
	c.t.Helper()
	id, got, data := c.next()
	if got != event || !strings.Contains(data, part) {
		c.t.Fatalf("message %s %s, want %s with %s", got, data, event, part)
	}
	return id
}

// TestCurlResumesEvents has curl follow events, over HTTP/2 and HTTP/1, and come back with the id that it had last.
func TestCurlResumesEvents(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	s := apitest.Start(t, apitest.NewBackend(), func(o *api.Options) { o.Events = feed.New(st, slog.New(slog.DiscardHandler)) })
	first := newCurl(t, s, "/v1/events/watch")
	first.wants("begin", `"position":`)
	happens(t, st, "h1")
	id := first.wants("event", `"host":"h1"`)
	first.stop()
	happens(t, st, "h2")
	happens(t, st, "h3")
	second := newCurl(t, s, "/v1/events/watch?host=h3&after=7", "--http1.1", "-H", "Last-Event-ID: "+id)
	second.wants("begin", `"resumed":true`)
	second.wants("event", `"host":"h3"`)
	wrapped := newCurl(t, s, "/v1/events/watch?form=cloudevents&after="+id)
	wrapped.wants("begin", `"resumed":true`)
	if id := wrapped.wants("event", `"type":"portcullis.lock.changed"`); id == "" {
		t.Error("a CloudEvent has no id of a server-sent event")
	}
	third := newCurl(t, s, "/v1/events/watch?after=0123456789abcdef-7-0000000000000000")
	third.wants("begin", `"position":`)
	third.wants("gap", `"reason":"foreign"`)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	second.wants("end", `"reason":"stopping"`)
	third.wants("end", `"reason":"stopping"`)
}

func TestEventStreamIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, unlimited)
	wantProblem(t, f.do("GET", "/v1/events/watch", f.viewer, ""), http.StatusServiceUnavailable, v1.CodeUnavailable)
	wantProblem(t, f.do("GET", "/v1/events/watch?after="+strings.Repeat("x", 129), f.viewer, ""), http.StatusUnprocessableEntity, v1.CodeInvalid)
	wantProblem(t, f.do("GET", "/v1/events/watch?severity=bad", f.viewer, ""), http.StatusUnprocessableEntity, v1.CodeInvalid)
}
