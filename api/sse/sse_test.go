package sse

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// streamWriter is a response writer whose stream ends at its write deadline,
// written to or not, as that of HTTP/2 does.
type streamWriter struct {
	*httptest.ResponseRecorder

	mu          sync.Mutex
	read, write time.Time // deadlines
}

func (w *streamWriter) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = t
	return nil
}

func (w *streamWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write = t
	return nil
}

func (w *streamWriter) alive() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read.IsZero() && w.write.After(time.Now())
}

func word(s string) (Message, error) { return Message{Event: "word", ID: "7", Data: []byte(s)}, nil }

func TestQuietStreamLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &streamWriter{ResponseRecorder: httptest.NewRecorder(), read: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		words := make(chan string, 1)
		words <- "a\nb"
		s, err := Open(w)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan End)
		go func() { how, _ := Copy(ctx, nil, s, words, word); done <- how }()
		for range 100 {
			synctest.Wait()
			if !w.alive() {
				t.Fatal("the stream is past a deadline")
			}
			time.Sleep(time.Second)
		}
		cancel()
		if how := <-done; how != Over {
			t.Errorf("ended as %d, want %d", how, Over)
		}
		body := w.Body.String()
		if !strings.HasPrefix(body, "retry: 2000\n\nid: 7\nevent: word\ndata: a\ndata: b\n\n: ") || strings.Count(body, ": still here") != 6 {
			t.Errorf("stream of 100 quiet seconds: %q; want the word, and 6 signs of life", body)
		}
	})
}

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	close(closed)
	drained := make(chan string)
	close(drained)
	for _, tt := range []struct {
		stop <-chan struct{}
		in   chan string
		want End
	}{{nil, drained, Drained}, {closed, make(chan string), Stopped}} {
		s, err := Open(&streamWriter{ResponseRecorder: httptest.NewRecorder()})
		if err != nil {
			t.Fatal(err)
		}
		if how, err := Copy(t.Context(), tt.stop, s, tt.in, word); how != tt.want || err != nil {
			t.Errorf("ended as %d, %v, want %d", how, err, tt.want)
		}
	}
}

func TestUnwritableMessageEndsTheStream(t *testing.T) {
	t.Parallel()
	s, err := Open(&streamWriter{ResponseRecorder: httptest.NewRecorder()})
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan string, 1)
	in <- "x"
	bad := errors.New("no form")
	if _, err := Copy(t.Context(), nil, s, in, func(string) (Message, error) { return Message{}, bad }); !errors.Is(err, bad) {
		t.Errorf("got %v, want %v", err, bad)
	}
}
