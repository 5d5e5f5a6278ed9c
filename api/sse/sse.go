// Package sse writes server-sent events, as the HTML standard has them.
package sse

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// MediaType is that of a stream.
	MediaType = "text/event-stream"

	// KeepAlive is how often a quiet stream says something, so that both
	// sides notice when the other is gone.
	KeepAlive = 15 * time.Second

	// Patience is how long a client may take to accept what is written. It
	// is longer than KeepAlive because HTTP/2 resets a stream at its write
	// deadline even when nothing waits to be written.
	Patience = KeepAlive + 10*time.Second

	// again is how long a client waits before it connects again.
	again = 2 * time.Second
)

// Message is one server-sent event. Event and ID have no line break.
type Message struct {
	Event string
	ID    string // with which the client resumes behind this event; empty: it keeps the one before
	Data  []byte
}

func (m *Message) text() []byte {
	var b bytes.Buffer
	if m.ID != "" {
		fmt.Fprintf(&b, "id: %s\n", m.ID)
	}
	fmt.Fprintf(&b, "event: %s\n", m.Event)
	for line := range bytes.SplitSeq(m.Data, []byte("\n")) {
		fmt.Fprintf(&b, "data: %s\n", line)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// End says why a stream ended.
type End uint8

// Ends of streams.
const (
	Gone    End = iota // the client is gone, or too slow for a single message
	Drained            // its source ended
	Stopped            // the server stops
	Over               // its context ended: the client is gone, or its credential has ended
)

// Writer writes the events of one stream.
type Writer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// Open begins a stream as the answer of a request.
func Open(w http.ResponseWriter) (*Writer, error) {
	w.Header().Set("Content-Type", MediaType)
	s := &Writer{w: w, rc: http.NewResponseController(w)}
	// The server's read deadline is for requests; past it, HTTP/1 would take
	// the client for gone.
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("clear read deadline: %w", err)
	}
	_ = s.write(fmt.Appendf(nil, "retry: %d\n\n", again.Milliseconds())) // the next one finds out, too
	return s, nil
}

// Send writes one event.
func (s *Writer) Send(m Message) error { return s.write(m.text()) }

func (s *Writer) write(text []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.rc.Flush()
}

// Copy writes the events that form makes of in, until in is closed, ctx or stop ends, or the client is gone. An error is
// one of form.
func Copy[T any](ctx context.Context, stop <-chan struct{}, s *Writer, in <-chan T, form func(T) (Message, error)) (End, error) {
	tick := time.NewTicker(KeepAlive)
	defer tick.Stop()
	for {
		text := []byte(": still here\n\n")
		select {
		case <-ctx.Done():
			return Over, nil
		case <-stop:
			return Stopped, nil
		case <-tick.C:
		case v, ok := <-in:
			if !ok {
				return Drained, nil
			}
			m, err := form(v)
			if err != nil {
				return Drained, err
			}
			text = m.text()
		}
		if s.write(text) != nil {
			return Gone, nil
		}
	}
}
