package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/client"
	"portcullis/api/events"
	"portcullis/api/events/feed"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// wire passes connections on, and can be cut.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
	away  bool // connections are closed at once
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to}
	t.Cleanup(func() { l.Close(); w.cut() })
	go w.run()
	return w
}

func (w *wire) run() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			near.Close()
			continue
		}
		w.mu.Lock()
		if w.away {
			near.Close()
			far.Close()
		}
		w.conns = append(w.conns, near, far)
		w.mu.Unlock()
		go func() { _, _ = io.Copy(near, far) }()
		go func() { _, _ = io.Copy(far, near) }()
	}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// leave cuts all connections, and closes others at once until comeBack.
func (w *wire) leave() {
	w.mu.Lock()
	w.away = true
	w.mu.Unlock()
	w.cut()
}

func (w *wire) comeBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = false
}

// TestFollowResumesAfterCuts cuts the connection of a command that follows events: it prints each event once.
func TestFollowResumesAfterCuts(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	s := apitest.Start(t, apitest.NewBackend(), func(o *api.Options) { o.Events = feed.New(st, slog.New(slog.DiscardHandler)) })
	w := newWire(t, strings.TrimPrefix(s.URL, "https://"))
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "https://" + w.Addr().String(), CA: ca, Token: s.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	out, in := io.Pipe()
	told, note := io.Pipe()
	env := cli.New(nil, in, note)
	root := &cobra.Command{}
	env.Flags(root)
	if err := root.ParseFlags([]string{"-o", "json"}); err != nil {
		t.Fatal(err)
	}
	happens := func(host string) {
		_, err := st.Update(t.Context(), func(tx *store.Tx) error {
			return events.Record(t.Context(), tx, time.Now(), v1.Event{Type: events.LockChanged, By: events.ByEvidence, Cause: "unlocked", Host: host})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Audit().Events(t.Context(), v1.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	series, err := events.SeriesOf(t.Context(), st)
	if err != nil || len(list.Items) > 0 {
		t.Fatal(list, err)
	}
	now, err := series.Now(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- followEvents(ctx, env, c, v1.EventWatch{After: now.String()}) }()
	lines, notes := bufio.NewScanner(out), bufio.NewScanner(told)
	for _, host := range []string{"h1", "h2", "h3"} {
		happens(host)
		if !lines.Scan() {
			t.Fatal("nothing is printed")
		}
		var e v1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Host != host || e.Count != 1 || e.ID == "" {
			t.Fatalf("printed %s, %v; want the first event of %s", lines.Text(), err, host)
		}
		w.cut()
		if !notes.Scan() || !strings.Contains(notes.Text(), "the stream is opened again in 1s") {
			t.Fatalf("told %q", notes.Text())
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestFollowEndsWhereTheServiceRefuses: another attempt would be refused, too.
func TestFollowEndsWhereTheServiceRefuses(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, apitest.NewBackend())
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: s.URL, CA: ca, Token: "unknown"})
	if err != nil {
		t.Fatal(err)
	}
	err = followEvents(t.Context(), cli.New(nil, io.Discard, io.Discard), c, v1.EventWatch{})
	if err == nil || !strings.Contains(err.Error(), "not known here") {
		t.Errorf("an unknown token: %v", err)
	}
}
