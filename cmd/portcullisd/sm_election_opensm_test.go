package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

var (
	enteringState   = regexp.MustCompile(`Entering (\w+) state`)
	madsOutstanding = regexp.MustCompile(`sm_mad_ctrl_retire_trans_mad: (\d+) QP0 MADs outstanding(: wire is clean)?`)
)

// opensm starts OpenSM at a node. It gets short times, for with its own a takeover takes a minute. For each request of its
// own that is over, it reports how many others are not.
func (s *stage) opensm(node string, priority int) *contender {
	s.t.Helper()
	return s.openSMWith(node, priority, electionKey)
}

// openSMWith starts OpenSM with an SM_Key.
func (s *stage) openSMWith(node string, priority int, key string) *contender {
	s.t.Helper()
	dir := filepath.Join(s.dir, node)
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	conf, levels := filepath.Join(dir, "opensm.conf"), filepath.Join(dir, "levels.conf")
	for file, text := range map[string]string{
		conf: fmt.Sprintf("sm_key %s\nsm_priority %d\nsminfo_polling_timeout %d\npolling_retry_number 1\nsweep_interval 1\n"+
			"force_log_flush TRUE\nper_module_logging_file %s\n", key, priority, pollEvery.Milliseconds(), levels),
		levels: "osm_sm_mad_ctrl.c=0x08\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	client := s.client
	client.Dir = dir
	cmd, err := client.Command(s.t.Context(), node, "opensm", "-F", conf, "-e", "-f", "stdout")
	if err != nil {
		s.t.Fatal(err)
	}
	c := &contender{stage: s, node: node, cmd: cmd, ended: make(chan struct{})}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	c.start(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.logged(lines.Text())
		}
	})
	return c
}

// logged takes a line of OpenSM's log.
func (c *contender) logged(line string) {
	if m := madsOutstanding.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[1]) // the pattern has digits only
		if m[2] != "" {
			n = 0 // the number is read a moment later, when there may be a new request
		}
		c.wire.told(n)
		return
	}
	if strings.Contains(line, "] 0x08 -> ") {
		return // other lines of the same module, five a request
	}
	if m := enteringState.FindStringSubmatch(line); m != nil {
		c.entered(strings.ReplaceAll(m[1], "_", ""))
	}
	c.wire.alive()
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.said, "%s\n", line)
}

const (
	// pollEvery is how often an OpenSM that is standby looks for its master.
	pollEvery = time.Second
	// silence is how long an OpenSM with a request out may say nothing before it
	// counts as hung. It polls or sweeps every second.
	silence = 10 * time.Second
)

// wire is what OpenSM reports of its own requests. One that a peer took and did not answer before it ended is lost: on a
// simulator no request times out. OpenSM waits for the end of all its requests before it sweeps, hence without end.
type wire struct {
	mu     sync.Mutex
	out    int       // requests without an answer
	clean  int       // how many times there were none
	spoken time.Time // when OpenSM said something last
}

func (w *wire) told(out int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out, w.spoken = out, time.Now()
	if out == 0 {
		w.clean++
	}
}

func (w *wire) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spoken = time.Now()
}

func (w *wire) cleaned() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clean
}

// hung returns the evidence if OpenSM waits for an answer that does not come.
func (w *wire) hung() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if still := time.Since(w.spoken); w.out > 0 && still > silence {
		return fmt.Sprintf("OpenSM says that %d of its requests are outstanding, and has said nothing for %v", w.out, still.Round(time.Second))
	}
	return ""
}

// answered waits until an OpenSM that is standby has had its next poll answered and no request out: the SM that it polls
// can now end without taking a request along.
func (c *contender) answered() {
	t := c.stage.t
	t.Helper()
	before := c.wire.cleaned()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(electionTime)
	for c.wire.cleaned() == before {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the master does not answer the polls of OpenSM at %s: %s", c.node, c.wire.hung())
		}
	}
}

// variant is one election between ours and OpenSM.
type variant struct {
	name         string
	ours, theirs int    // priorities
	node, other  string // ours and theirs; "sm" has the lowest GUID
	higher       bool   // ours is
	oursFirst    bool
	sig          syscall.Signal // ends the winner
}

// variants returns every order of rank and start, and both ends of the winner.
func variants() (all []variant) {
	for _, v := range []variant{
		{name: "higher priority", ours: 9, theirs: 5, node: "h2", other: "sm", higher: true},
		{name: "lower priority", ours: 5, theirs: 9, node: "sm", other: "h2"},
		{name: "lower GUID", ours: 7, theirs: 7, node: "sm", other: "h2", higher: true},
		{name: "higher GUID", ours: 7, theirs: 7, node: "h2", other: "sm"},
	} {
		order := v.name
		for _, v.oursFirst = range []bool{true, false} {
			for _, v.sig = range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				first := map[bool]string{true: "ours first", false: "OpenSM first"}[v.oursFirst]
				v.name = order + ", " + first + ", " + v.sig.String()
				all = append(all, v)
			}
		}
	}
	return all
}

// tries is how often an election is held that the machine of the test may spoil.
const tries = 4

// TestElectionWithOpenSM has ours and OpenSM compete in every order of rank and
// start, then takes the winner away.
func TestElectionWithOpenSM(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm", "sminfo")
	cases := variants()
	var names []string
	for _, v := range cases {
		names = append(names, v.name)
	}
	beside(t, 4, names, func(t *testing.T, i int) {
		for range tries {
			hung := cases[i].hold(t)
			if hung == "" {
				return
			}
			t.Logf("anew on a fresh fabric: %s", hung)
		}
		t.Errorf("OpenSM hung %d times", tries)
	})
}

// hold holds the election on a fresh fabric. It returns the evidence if OpenSM lost a request with the master and hangs
// without end, as it would not on hardware.
func (v *variant) hold(t *testing.T) (hung string) {
	begin := newStage
	if v.oursFirst && !v.higher {
		begin = newOwnStage // OpenSM asks ours to hand over
	}
	s := begin(t)
	ours := func() *contender { return s.ours(v.node, v.ours, v.other) }
	theirs := func() *contender { return s.opensm(v.other, v.theirs) }
	var us, them, first *contender
	if v.oursFirst {
		us = ours()
		first = us
	} else {
		them = theirs()
		first = them
	}
	before := s.ruled(first, electionTime)
	if v.oursFirst {
		them = theirs()
	} else {
		us = ours()
	}
	winner, loser := us, them
	if !v.higher {
		winner, loser = them, us
	}
	loser.awaitState("standby", electionTime)
	s.same("when both were there", before, s.ruled(winner, electionTime))
	routes := s.routes()
	if loser == them {
		them.answered()
	}
	winner.end(v.sig)
	after, hung := s.ruledOrHung(loser, electionTime)
	if hung != "" {
		return hung
	}
	s.same("when the master had ended", before, after)
	if loser == us {
		us.settled(electionTime)
		s.same("in the forwarding tables", routes, s.routes())
	}
	for c, want := range map[*contender]int{winner: 1, loser: map[bool]int{true: 2, false: 1}[loser == first]} {
		h := c.history()
		if masters := reigns(h); masters != want {
			t.Errorf("%s went through %q: master %d times, want %d", c.node, h, masters, want)
		}
	}
	return ""
}

// reigns counts how often mastership was gained. A master that is handed the
// subnet, because the other one had not heard yet, reads all of it again: it is
// discovering in between and remains the master.
func reigns(history []string) (n int) {
	master := false
	for _, state := range history {
		switch {
		case state == "master" && !master:
			n, master = n+1, true
		case state != "master" && state != "discovering":
			master = false
		}
	}
	return n
}
