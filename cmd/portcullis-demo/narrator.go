package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// narrator prints the story, a line at a time, each with the time since the start. Hosts that are provisioned side by side
// use it concurrently.
type narrator struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

func newNarrator(w io.Writer) *narrator { return &narrator{w: w, start: time.Now()} }

// chapter begins a part of the story.
func (n *narrator) chapter(title string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.w, "\n%s\n%s\n", title, strings.Repeat("-", len(title)))
}

// say reports one event.
func (n *narrator) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.w, "%6.2fs  %s\n", time.Since(n.start).Seconds(), fmt.Sprintf(format, args...))
}

// raw prints text as it is, for tables.
func (n *narrator) raw(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprint(n.w, text)
}

func (n *narrator) elapsed() time.Duration { return time.Since(n.start) }
