package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

const (
	// maxEvent bounds the data of one server-sent event.
	maxEvent = 1 << 20
	// silence is how long a stream may be without a sign of life, of which the service sends one each 15 s.
	silence = time.Minute
)

// errSilent is the end of a stream that shows no sign of life.
var errSilent = fmt.Errorf("the stream was silent for %v", silence)

// message is one server-sent event.
type message struct {
	event, id string
	data      []byte
}

// messages has the service do an operation, and returns the server-sent events of its answer. The sequence ends after the first error,
// and with io.ErrUnexpectedEOF when the service ends the stream.
func messages(ctx context.Context, c *Client, o operation, q query, operands ...string) iter.Seq2[*message, error] {
	return func(yield func(*message, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		resp, err := open(ctx, c, o, q, operands...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer resp.Body.Close()
		watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
		defer watchdog.Stop()
		err = scan(resp, func() { watchdog.Reset(silence) }, func(m *message) bool {
			watchdog.Stop() // a caller takes its time
			defer watchdog.Reset(silence)
			return yield(m, nil)
		})
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// scan reads the events of an answer until one is not taken. alive is called with each line.
func scan(resp *http.Response, alive func(), take func(*message) bool) error {
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	var m message
	var filled bool
	for lines.Scan() {
		alive()
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if filled && !take(&message{m.event, m.id, bytes.TrimSuffix(m.data, []byte("\n"))}) {
				return nil
			}
			m, filled = message{id: m.id}, false
		case name == "event":
			m.event = value
		case name == "id":
			m.id = value
		case name == "data":
			if len(m.data)+len(value) > maxEvent {
				return errors.New("an event is too large")
			}
			m.data, filled = append(append(m.data, value...), '\n'), true
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}
