package ibsimlab

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// maxTranscript bounds the stored output of a simulator; a verbose one prints a line per packet.
const maxTranscript = 4 << 20

var errEnded = errors.New("ibsim has ended")

// transcript collects the output of the simulator and wakes goroutines that wait for some of it.
type transcript struct {
	mu      sync.Mutex
	text    []byte
	ended   bool
	changed chan struct{} // closed and replaced at every change
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

// Write implements io.Writer. Output beyond maxTranscript is dropped.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), maxTranscript-len(t.text))]...)
	t.wake()
	return len(p), nil
}

func (t *transcript) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.wake()
}

// wake is called with mu held.
func (t *transcript) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *transcript) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.text)
}

// String is all of the output.
func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// tail is the end of the output, for error messages.
func (t *transcript) tail() string {
	s := strings.TrimSpace(t.String())
	return s[max(0, len(s)-400):]
}

// wait returns the output from offset from once ok accepts it.
func (t *transcript) wait(ctx context.Context, from int, ok func(string) bool) (string, error) {
	for {
		t.mu.Lock()
		text, ended, changed := string(t.text[from:]), t.ended, t.changed
		t.mu.Unlock()
		if ok(text) {
			return text, nil
		}
		if ended {
			return "", errEnded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
