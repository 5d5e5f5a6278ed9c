package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	log "portcullis/api/audit"
	"portcullis/api/client"
	"portcullis/api/credential"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// writes appends an entry to a log.
func writes(t *testing.T, st *store.Store, action, object string) {
	t.Helper()
	_, err := st.Update(t.Context(), func(tx *store.Tx) error {
		return log.Append(t.Context(), tx, log.Entry{Time: noon, Actor: "ann", Action: action, Object: object, Reason: "ticket 88"})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// served returns a log and a client of a service that has it.
func served(t *testing.T, token string, edit ...func(*api.Options)) (*store.Store, *wire, *client.Client) {
	t.Helper()
	st := store.New(memory.New(time.Now), "")
	edit = append(edit, func(o *api.Options) { o.Audit = log.Book{Store: st} })
	s := apitest.Start(t, apitest.NewBackend(), edit...)
	w := newWire(t, strings.TrimPrefix(s.URL, "https://"))
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	if token == "" {
		token = s.Viewer
	}
	c, err := client.New(client.Options{URL: "https://" + w.Addr().String(), CA: ca, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return st, w, c
}

// TestWatchPrintsEachEntryOnce has the service go away and return, with entries that are written meanwhile.
func TestWatchPrintsEachEntryOnce(t *testing.T) {
	t.Parallel()
	st, wire, c := served(t, "")
	out, in := io.Pipe()
	told, note := io.Pipe()
	notes := make(chan string, 100)
	go func() {
		for s := bufio.NewScanner(told); s.Scan(); {
			notes <- s.Text()
		}
	}()
	writes(t, st, "tenant.create", "tenant/1")
	w := &watcher{env: cli.New(nil, in, note), c: c, format: asJSON, every: time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.run(ctx) }()
	lines := bufio.NewScanner(out)
	next := uint64(1)
	prints := func(n int) {
		t.Helper()
		for range n {
			if !lines.Scan() {
				t.Fatal("nothing is printed")
			}
			var e v1.AuditEntry
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Seq != next || e.Object != fmt.Sprint("tenant/", next) {
				t.Fatalf("printed %s, %v; want entry %d", lines.Text(), err, next)
			}
			next++
		}
	}
	prints(1)
	for range 2 {
		wire.leave()
		if note := <-notes; !strings.Contains(note, "; the service is asked again in ") {
			t.Fatalf("told %q", note)
		}
		writes(t, st, "tenant.create", fmt.Sprint("tenant/", next))
		writes(t, st, "tenant.create", fmt.Sprint("tenant/", next+1))
		wire.comeBack()
		prints(2)
		writes(t, st, "tenant.create", fmt.Sprint("tenant/", next))
		prints(1)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWatchEndsWhereTheServiceRefuses has a token that is unknown, and one that may not read the log.
func TestWatchEndsWhereTheServiceRefuses(t *testing.T) {
	t.Parallel()
	token, digest := credential.New()
	tokens, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens:\n- {name: slurm, role: operator, sha256: %s, p_keys: [0x0100-0x01ff]}\n", digest))
	if err != nil {
		t.Fatal(err)
	}
	for shown, want := range map[string]int{"unknown": 401, token: 403} {
		_, _, c := served(t, shown, func(o *api.Options) { o.Tokens = tokens })
		for _, fromNow := range []bool{true, false} {
			w := &watcher{env: cli.New(nil, io.Discard, io.Discard), c: c, every: time.Millisecond, fromNow: fromNow}
			err := w.run(t.Context())
			if no, is := errors.AsType[*v1.Problem](err); !is || no.Status != want {
				t.Errorf("%d: ended with %v", want, err)
			}
		}
	}
}

// TestWatchBeginsNow prints nothing that was before, and takes no entry for another one when others are filtered out.
func TestWatchBeginsNow(t *testing.T) {
	t.Parallel()
	st, _, c := served(t, "")
	var out bytes.Buffer
	writes(t, st, "host.assign", "host/before")
	w := &watcher{env: cli.New(nil, &out, io.Discard), c: c, fromNow: true, q: v1.AuditQuery{Action: "host."}}
	polls := func() {
		t.Helper()
		if err := w.poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	polls()
	polls()
	writes(t, st, "tenant.create", "tenant/b")
	polls()
	if w.at.Seq != 2 || w.at.Hash == "" || out.Len() > 0 {
		t.Errorf("at %+v, printed %s; want entry 2 and nothing", w.at, &out)
	}
	writes(t, st, "host.assign", "host/\x1b[2Jh1")
	writes(t, st, "tenant.create", "tenant/c")
	polls()
	polls()
	const want = "3 2026-11-21 12:00:00Z ann host.assign host/\ufffd[2Jh1; reason: ticket 88\n"
	if out.String() != want || w.at.Seq != 4 {
		t.Errorf("printed %q, at %+v; want %q and entry 4", out.String(), w.at, want)
	}
}

// TestWatchNoticesAnotherLog has a state that was restored while a command watches: nothing is left out without a word.
func TestWatchNoticesAnotherLog(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]int{"shorter": 1, "as long": 2, "longer": 3} {
		st, _, c := served(t, "")
		writes(t, st, "tenant.create", "tenant/a")
		writes(t, st, "tenant.create", "tenant/b")
		w := &watcher{env: cli.New(nil, io.Discard, io.Discard), c: c}
		if err := w.poll(t.Context()); err != nil || w.at.Seq != 2 {
			t.Fatal(err, w.at)
		}
		other, _, c := served(t, "")
		for range after {
			writes(t, other, "tenant.create", "tenant/other")
		}
		w.c = c
		err := w.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the state was restored") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWatchEndsWhereNothingCanBePrinted has a reader that is gone.
func TestWatchEndsWhereNothingCanBePrinted(t *testing.T) {
	t.Parallel()
	st, _, c := served(t, "")
	writes(t, st, "tenant.create", "tenant/a")
	out, in := io.Pipe()
	out.Close()
	w := &watcher{env: cli.New(nil, in, io.Discard), c: c}
	if err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) || w.at.Seq != 0 {
		t.Errorf("ended with %v at %+v", err, w.at)
	}
}

// TestWatchRefusesAnswersOutOfOrder has pages that no service returns.
func TestWatchRefusesAnswersOutOfOrder(t *testing.T) {
	t.Parallel()
	for _, page := range []v1.AuditEntries{
		{Items: []v1.AuditEntry{{Seq: 5}}, Head: v1.AuditHead{Seq: 9}},
		{Items: []v1.AuditEntry{{Seq: 6}, {Seq: 6}}, Head: v1.AuditHead{Seq: 9}},
		{Next: "x", Head: v1.AuditHead{Seq: 9}},
		{Next: "4", Head: v1.AuditHead{Seq: 9}},
	} {
		w := &watcher{env: cli.New(nil, io.Discard, io.Discard), at: v1.AuditHead{Seq: 5}}
		if err := w.take(&page); err == nil || !strings.HasPrefix(err.Error(), "the service returned ") {
			t.Errorf("%+v: %v", page, err)
		}
	}
}
