// Package journal writes the log of the program: as lines of text, or into systemd's journal with a field for each attribute.
package journal

import (
	"bytes"
	"io"
	"log/slog"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"

	"portcullis/fabricsm/sm"
)

// New writes text lines to w. When w is a stream to the journal, records go there with their fields. Records that it
// does not take are written as lines that begin with their priority (sd-daemon(3)). The journal knows the time.
func New(w io.Writer, level slog.Level) *slog.Logger {
	if ok, err := journal.StderrIsJournalStream(); err != nil || !ok {
		return slog.New(slog.NewTextHandler(w, TextOptions(level, false)))
	}
	text := slog.NewTextHandler(&prioritised{w: w}, TextOptions(level, true))
	if !journal.Enabled() {
		return slog.New(text)
	}
	return slog.New(&journalHandler{level: level, send: journal.Send, other: text})
}

// TextOptions are those of lines of text. The text of an event says all.
func TextOptions(level slog.Level, timeless bool) *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if _, ok := a.Value.Any().(sm.Event); ok || timeless && len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
			return slog.Attr{}
		}
		return a
	}}
}

// prioritised puts the syslog priority of a text line in front of it.
type prioritised struct {
	mu sync.Mutex
	w  io.Writer
}

// Write takes one whole line, as slog's handlers write them.
func (p *prioritised) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.w.Write(append([]byte(priority(line)), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

func priority(line []byte) string {
	switch {
	case bytes.HasPrefix(line, []byte("level=ERROR")):
		return "<3>"
	case bytes.HasPrefix(line, []byte("level=WARN")):
		return "<4>"
	case bytes.HasPrefix(line, []byte("level=DEBUG")):
		return "<7>"
	default:
		return "<6>"
	}
}
