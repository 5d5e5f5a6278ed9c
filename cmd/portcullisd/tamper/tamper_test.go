package tamper

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/audit/anchor"
	"portcullis/api/audit/chain"
	"portcullis/api/audit/verifier"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/storage"
)

// answers is a Judge and a Clock that returns one error after the other.
type answers struct {
	errs   []error
	halted error
	calls  int
}

func (a *answers) Judge(context.Context) error { a.calls++; return a.errs[min(a.calls, len(a.errs))-1] }

func (a *answers) Read(ctx context.Context) error { return a.Judge(ctx) }

func (a *answers) Halted() error { return a.halted }

// A start waits until state and clock were compared, whatever the error is, and ends when that is asked for.
func TestAStartWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, start := range map[string]func(context.Context, *answers, *slog.Logger, func(string)) error{
			"to compare the audit log with its anchors": func(ctx context.Context, a *answers, log *slog.Logger, status func(string)) error {
				return JudgeState(ctx, a, log, status)
			},
			"to read the highest time that was seen": func(ctx context.Context, a *answers, log *slog.Logger, status func(string)) error {
				return ReadClock(ctx, a, log, status)
			},
		} {
			var log bytes.Buffer
			said := ""
			a := &answers{errs: []error{store.ErrAway, errors.New("a record that is damaged"), nil}}
			began := time.Now()
			if err := start(t.Context(), a, slog.New(slog.NewTextHandler(&log, nil)), func(line string) { said = line }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if a.calls != 3 || time.Since(began) != 2*storage.Pause || said != "waits for the store, "+name {
				t.Errorf("%s: %d calls within %v; the status says %q", name, a.calls, time.Since(began), said)
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != 2 || !strings.Contains(log.String(), "a record that is damaged") {
				t.Errorf("%s: the log says %q", name, &log)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*storage.Pause+storage.Pause/2)
			if err := start(ctx, &answers{errs: []error{store.ErrAway}}, slog.New(slog.DiscardHandler), func(string) {}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: the end is asked for: %v", name, err)
			}
			cancel()
		}
	})
}

// A clock that is not believed holds up no start.
func TestClockThatIsBehind(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	a := &answers{errs: []error{nil}, halted: errors.New("the clock is 1h behind")}
	if err := ReadClock(t.Context(), a, slog.New(slog.NewTextHandler(&log, nil)), func(string) {}); err != nil || !strings.Contains(log.String(), "nothing new is granted") {
		t.Errorf("%v, and the log says %q", err, &log)
	}
	if d := cmp.Diff(v1.Condition{Name: "clock", Detail: "the clock is 1h behind"}, clockCondition(a)); d != "" {
		t.Errorf("condition (-want +got):\n%s", d)
	}
}

// sinks are the states of places for anchors.
type sinks struct {
	states []anchor.State
	held   bool
}

func (s *sinks) States() []anchor.State { return s.states }

func (s *sinks) Held() bool { return s.held }

// A sink that lacks the head is named when it has lacked it for long, and nothing is unready by that.
func TestAnchorsCondition(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	late := anchor.State{Name: "file:/a", Since: now.Add(-time.Hour), Err: errors.New("no space")}
	for _, tt := range []struct {
		name string
		of   sinks
		want string
	}{
		{"none lacks it", sinks{states: []anchor.State{{Name: "journal"}}}, ""},
		{"for a minute", sinks{states: []anchor.State{{Name: "file:/a", Since: now.Add(-time.Minute), Err: errors.New("no space")}}}, ""},
		{"for long, but it was not tried", sinks{states: []anchor.State{{Name: "file:/a", Since: now.Add(-time.Hour)}}}, ""},
		{"for long", sinks{states: []anchor.State{{Name: "journal"}, late}}, "file:/a lacks the head of the audit log since 2026-11-28T11:00:00Z: no space"},
		{"a review", sinks{states: []anchor.State{late}, held: true}, "file:/a lacks the head of the audit log since 2026-11-28T11:00:00Z: no space; nothing is anchored before the review of the state has ended"},
	} {
		if d := cmp.Diff(v1.Condition{Name: "anchors", OK: true, Detail: tt.want}, anchorsCondition(&tt.of, 15*time.Minute, now)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestAuditDetail(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	broken := chain.Break{Cause: chain.Altered, Text: "entry 7 is not what was written"}
	for _, tt := range []struct {
		state verifier.State
		want  string
	}{
		{verifier.State{Good: at}, ""},
		{
			verifier.State{Broken: &broken, Since: at},
			"the audit log is not whole (altered) since 2026-11-28T12:00:00Z: entry 7 is not what was written; no verification before found it whole",
		},
		{
			verifier.State{Broken: &broken, Since: at, Good: at.Add(-time.Hour), Head: chain.Head{Seq: 6}, Open: []chain.Break{broken, broken, broken}},
			"the audit log is not whole (altered) since 2026-11-28T12:00:00Z: entry 7 is not what was written, and 2 more breaks; it was whole at 2026-11-28T11:00:00Z with 6 entries",
		},
	} {
		if got := AuditDetail(&tt.state); got != tt.want {
			t.Errorf("detail %q, want %q", got, tt.want)
		}
	}
}

// flusher returns when its context ends, and keeps whether that was ended already.
type flusher struct{ ended bool }

func (f *flusher) Flush(ctx context.Context) { f.ended = ctx.Err() != nil; <-ctx.Done() }

// The end of the service waits for what was decided last, and not for ever.
func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var f flusher
		began := time.Now()
		if Flush(ctx, &f); f.ended || time.Since(began) != flushTime {
			t.Errorf("ended at once: %v; it took %v", f.ended, time.Since(began))
		}
	})
}

// A review is named with its cause, and is no failure.
func TestReviewCondition(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		mark *review.Mark
		want []string
	}{
		{"no review", nil, nil},
		{"a restored state", &review.Mark{Since: since}, []string{"in review since 2026-11-28T12:00:00Z: only what backup and fabric agree on is granted; portcullis restore review"}},
		{"a recovered store", &review.Mark{Since: since, Recovered: []string{"b", "c"}}, []string{"in review since 2026-11-28T12:00:00Z: ", "b", "; only what it and the fabric agree on is granted; portcullis restore review"}},
		{
			"a state that was rolled back", &review.Mark{Since: since, RolledBack: &review.RolledBack{Source: "file:/a", Anchor: chain.Anchor{Seq: 9}}},
			[]string{": the state was rolled back: audit entry 9", "file:/a", "; only what it and the fabric agree on is granted; portcullis restore review"},
		},
	} {
		st := store.New(memory.New(time.Now), "")
		if tt.mark != nil {
			if _, err := st.Update(t.Context(), func(tx *store.Tx) error { return review.Marks().Put(tx, review.Key, *tt.mark) }); err != nil {
				t.Fatal(err)
			}
		}
		c := Conditions{Clock: &answers{}, Anchors: &sinks{}, Store: st}
		all := c.All(t.Context())
		if tt.mark == nil {
			if len(all) != 2 {
				t.Errorf("%s: %+v", tt.name, all)
			}
			continue
		}
		if len(all) != 3 || all[1].Name != "review" || !all[1].OK {
			t.Fatalf("%s: %+v", tt.name, all)
		}
		for _, want := range tt.want {
			if !strings.Contains(all[1].Detail, want) {
				t.Errorf("%s: %q lacks %q", tt.name, all[1].Detail, want)
			}
		}
	}
}
