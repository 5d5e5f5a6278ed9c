package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestElectionOfTwo has two of ours compete, kills the master, and measures how
// long the fabric has none.
func TestElectionOfTwo(t *testing.T) {
	ibsimtest.Need(t, "sminfo")
	cases := []struct {
		first, second string
		p1, p2        int
		winner        string
	}{
		{"sm", "h2", 9, 5, "sm"},
		{"sm", "h2", 5, 9, "h2"},
		{"sm", "h2", 7, 7, "sm"},
		{"h2", "sm", 7, 7, "sm"},
	}
	var names []string
	for _, tt := range cases {
		names = append(names, fmt.Sprintf("%s with %d, then %s with %d", tt.first, tt.p1, tt.second, tt.p2))
	}
	beside(t, 4, names, func(t *testing.T, i int) {
		tt := cases[i]
		// 500 ms between polls and 4 tries of at most 200 ms, then discovery.
		atMost(t, 2*time.Second+takeOverTime, func() time.Duration { return takeOver(t, tt.first, tt.second, tt.p1, tt.p2, tt.winner) })
	})
}

// TestPlannedHandover stops the master in order: it hands over before it ends.
func TestPlannedHandover(t *testing.T) {
	atMost(t, time.Second, func() time.Duration { return handOver(t) })
}

// TestElectionAfterASplit cuts the cables between two of ours, which are both
// master then, and puts them back.
func TestElectionAfterASplit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	near, far := s.ours("sm", 9, "h2"), s.ours("h2", 5, "sm")
	far.awaitState("standby", electionTime)
	before := s.ruled(near, electionTime)
	for _, cable := range []string{`"leaf1"[3]`, `"leaf1"[4]`} {
		ibsimtest.Console(t, s.lab, "unlink "+cable)
	}
	far.awaitState("master", electionTime)
	if got, want := s.master(), "master"; strings.Count(got, "SMINFO_MASTER") != 2 {
		t.Errorf("asked on both sides, %s is %s", want, got)
	}
	for _, cable := range []string{`"leaf1"[3]`, `"leaf1"[4]`} {
		ibsimtest.Console(t, s.lab, "relink "+cable)
	}
	far.awaitState("standby", electionTime)
	s.same("after the split", before, s.ruled(near, electionTime))
	if n := far.count("master"); n > 2 { // the first is possible: both began at once
		t.Errorf("mastership went to and fro: %q and %q", near.history(), far.history())
	}
}

// TestSMOnceBesideAnother: beside a master that it believes, --once configures
// nothing and says so.
func TestSMOnceBesideAnother(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	master := s.ours("sm", 9, "h2")
	s.ruled(master, electionTime)
	key := filepath.Join(s.dir, "sm.key")
	out, err := exec.Command("portcullisd", "sm", "--once", "--port", "ibsim:"+s.client.Socket+"/h2", "--priority", "3",
		"--sm-key-file", key, "--allowed-sm", s.guid("sm").String()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another subnet manager is master, so nothing was configured") {
		t.Errorf("--once beside a master: %v\n%s", err, out)
	}
	s.ruled(master, electionTime)
}
