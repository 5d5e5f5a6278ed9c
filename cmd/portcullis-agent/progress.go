package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// logger writes progress to standard error: lines for people on a terminal,
// JSON lines for machines everywhere else, with priorities for the journal.
func (a *app) logger() *slog.Logger {
	if !a.json && isTerminal(a.stderr) {
		return newPeople(a.stderr)
	}
	a.machine = true
	if a.stderr == os.Stderr && toJournal() {
		return newPrioritized(a.stderr)
	}
	return slog.New(slog.NewJSONHandler(a.stderr, nil))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// people prints "12:04:05 what happened (key value, key value)".
type people struct {
	out   io.Writer
	mu    *sync.Mutex // guards out
	attrs []slog.Attr
}

func newPeople(out io.Writer) *slog.Logger {
	return slog.New(&people{out: out, mu: new(sync.Mutex)})
}

// Enabled implements slog.Handler.
func (h *people) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (h *people) Handle(_ context.Context, r slog.Record) error {
	var parts []string
	add := func(a slog.Attr) bool {
		parts = append(parts, plain(a.Key+" "+a.Value.String()))
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	line := r.Time.Format("15:04:05 ")
	if r.Level >= slog.LevelWarn {
		line += strings.ToLower(r.Level.String()) + ": "
	}
	line += plain(r.Message)
	if len(parts) > 0 {
		line += " (" + strings.Join(parts, ", ") + ")"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintln(h.out, line)
	return err
}

// WithAttrs implements slog.Handler.
func (h *people) WithAttrs(a []slog.Attr) slog.Handler {
	return &people{out: h.out, mu: h.mu, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], a...)}
}

// WithGroup implements slog.Handler; the agent's records have no groups.
func (h *people) WithGroup(string) slog.Handler { return h }

// systemd is the service manager. Without NOTIFY_SOCKET nothing is sent.
type systemd struct{ log *slog.Logger }

// Notify implements agent.Notifier.
func (s systemd) Notify(state string) {
	if _, err := daemon.SdNotify(false, plain(state)); err != nil {
		s.log.Warn("the service manager was not notified", "error", err)
	}
}
