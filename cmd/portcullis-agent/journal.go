package main

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
)

// toJournal reports whether standard error goes to systemd's journal.
func toJournal() bool {
	ok, err := journal.StderrIsJournalStream()
	return err == nil && ok
}

// prioritized writes JSON lines, each behind its priority as the journal takes it
// off them (sd-daemon(3)): "<4>{...}" is a warning.
type prioritized struct {
	lines slog.Handler // of JSON, to out
	out   *priorityWriter
}

// priorityWriter puts a priority before each line.
type priorityWriter struct {
	mu       sync.Mutex // held while a record is written
	out      io.Writer
	priority journal.Priority
}

func newPrioritized(out io.Writer) *slog.Logger {
	w := &priorityWriter{out: out}
	return slog.New(&prioritized{lines: slog.NewJSONHandler(w, nil), out: w})
}

// Write implements io.Writer; it is called with one record, under mu.
func (w *priorityWriter) Write(line []byte) (int, error) {
	prefix := "<" + strconv.Itoa(int(w.priority)) + ">"
	n, err := w.out.Write(append([]byte(prefix), line...))
	return max(n-len(prefix), 0), err
}

// Enabled implements slog.Handler.
func (h *prioritized) Enabled(ctx context.Context, l slog.Level) bool { return h.lines.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h *prioritized) Handle(ctx context.Context, r slog.Record) error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	h.out.priority = priorityOf(r.Level)
	return h.lines.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *prioritized) WithAttrs(a []slog.Attr) slog.Handler {
	return &prioritized{lines: h.lines.WithAttrs(a), out: h.out}
}

// WithGroup implements slog.Handler.
func (h *prioritized) WithGroup(name string) slog.Handler {
	return &prioritized{lines: h.lines.WithGroup(name), out: h.out}
}

func priorityOf(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	default:
		return journal.PriInfo
	}
}
