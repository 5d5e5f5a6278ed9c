package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// contender is a subnet manager of either kind, as a process.
type contender struct {
	stage *stage
	node  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error

	mu     sync.Mutex
	states []string    // entered, in order
	at     []time.Time // when each was reported
	said   strings.Builder
	wire   wire // of an OpenSM
}

func (c *contender) entered(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states, c.at = append(c.states, strings.ToLower(state)), append(c.at, time.Now())
}

// history returns the states entered so far.
func (c *contender) history() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states)
}

// ours starts portcullisd at a node.
func (s *stage) ours(node string, priority int, peers ...string) *contender {
	s.t.Helper()
	key := filepath.Join(s.dir, node+".key")
	if err := os.WriteFile(key, []byte(electionKey+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	args := []string{
		"sm", "--port", "ibsim:" + s.client.Socket + "/" + node, "--json", "--enforcement", "accepted",
		"--priority", fmt.Sprint(priority), "--master-priority", fmt.Sprint(priority), "--sm-key-file", key,
	}
	for _, p := range peers {
		args = append(args, "--allowed-sm", s.guid(p).String())
	}
	c := &contender{stage: s, node: node, cmd: exec.Command("portcullisd", args...), ended: make(chan struct{})}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	c.start(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var line struct{ Event, State, Text string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.State != "" {
				c.entered(line.State)
			}
			c.mu.Lock()
			fmt.Fprintf(&c.said, "%s\n", lines.Text())
			c.mu.Unlock()
		}
	})
	return c
}

func (c *contender) start(read func()) {
	t := c.stage.t
	c.cmd.Stderr = &lines{}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		read()
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		c.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s at %s: %q\n%s%s", filepath.Base(c.cmd.Path), c.node, c.history(), tailOf(c.said.String()), c.cmd.Stderr)
		}
	})
}

func tailOf(s string) string { return s[max(0, len(s)-4000):] }

// end sends a signal and waits for the end. An OpenSM with a request out that is not answered does not end on SIGTERM: on
// simulators no request times out.
func (c *contender) end(sig syscall.Signal) {
	_ = c.cmd.Process.Signal(sig) // it may have ended
	late, theirs := electionTime, filepath.Base(c.cmd.Path) == "opensm"
	if theirs {
		late = politely
	}
	select {
	case <-c.ended:
	case <-time.After(late):
		if !theirs {
			c.stage.t.Errorf("%s did not end on %v", c.node, sig)
		}
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// settled waits until the last event of one of ours is that all is settled.
func (c *contender) settled(within time.Duration) {
	t := c.stage.t
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		c.mu.Lock()
		said := c.said.String()
		c.mu.Unlock()
		if strings.LastIndex(said, `"settled"`) > strings.LastIndex(said, `"state-changed"`) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not settle", c.node)
		}
		moment(t)
	}
}

// awaitState waits until the last state entered is one.
func (c *contender) awaitState(state string, within time.Duration) {
	t := c.stage.t
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		h := c.history()
		if len(h) > 0 && h[len(h)-1] == state {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s went through %q, want %s at the end", c.node, h, state)
		}
		moment(t)
	}
}

func (c *contender) count(state string) (n int) {
	for _, s := range c.history() {
		if s == state {
			n++
		}
	}
	return n
}

// last returns when a state was entered last.
func (c *contender) last(state string) (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.states {
		if s == state {
			at = c.at[i]
		}
	}
	return at
}
