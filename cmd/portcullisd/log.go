package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
)

// newLog writes text lines to w. When w is a stream to the journal, each line
// begins with its priority (sd-daemon(3)) and has no time, which the journal
// knows.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if ok, err := journal.StderrIsJournalStream(); err == nil && ok {
		w = &prioritised{w: w}
		o.ReplaceAttr = dropTime
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
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
