package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// told is an event of another subnet manager, as --json has it.
type told struct {
	Event, Text string
	Fields      map[string]any
}

func (e *told) field(name string) string { return fmt.Sprint(e.Fields[name]) }

// aboutOthers returns the events about other subnet managers that were reported so far.
func (c *contender) aboutOthers() (out []told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range strings.Split(c.said.String(), "\n") {
		var e told
		if json.Unmarshal([]byte(line), &e) == nil && (e.Event == "foreign-sm" || e.Event == "sm-info-refused") {
			out = append(out, e)
		}
	}
	return out
}

// TestForeignOpenSM: a real OpenSM of the highest priority shows a wrong SM_Key, or the right one where none is allowed, or
// is not on an empty list of those whose commands are obeyed. It takes nothing away from ours: that stays master, reports
// it once with the path, and then by the sequence.
func TestForeignOpenSM(t *testing.T) {
	t.Parallel()
	const wrongKey = "0x0bad0bad0bad0bad"
	for _, tt := range []struct {
		name, key string
		allowed   string // node at which one is allowed
	}{
		{"a wrong key at the allowed place", wrongKey, "h2"},
		{"the right key where none is allowed", electionKey, "h3"},
		{"a wrong key, and nobody is allowed", wrongKey, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newOwnStage(t)
			var peers []string
			if tt.allowed != "" {
				peers = append(peers, tt.allowed)
			}
			ours := s.ours("sm", 1, peers...)
			s.ruled(ours, electionTime)
			before := ours.history()
			theirs := s.openSMWith("h2", 15, tt.key)
			var first told
			eventually(t, "word of the other one", func() (bool, string) {
				all := ours.aboutOthers()
				i := slices.IndexFunc(all, func(e told) bool { return e.Event == "foreign-sm" })
				if i >= 0 {
					first = all[i]
				}
				return i >= 0, fmt.Sprint(all)
			})
			if !strings.HasPrefix(first.field("path"), "0,1,") || first.field("trusted") != "false" || first.field("guid") != s.guid("h2").String() {
				t.Errorf("first told of as %+v, want the GUID and the path of h2", first)
			}
			eventually(t, "OpenSM to think that it is master", func() (bool, string) {
				return slices.Contains(theirs.history(), "master"), fmt.Sprint(theirs.history())
			})
			from := time.Now()
			eventually(t, "three seconds beside it", func() (bool, string) { return time.Since(from) > 3*time.Second, "" })
			if got := ours.history(); !slices.Equal(got, before) {
				t.Errorf("ours went through %q, want it to stay master", got)
			}
			counts := map[string]int{}
			for _, e := range ours.aboutOthers() {
				counts[e.Event]++
				if n, err := strconv.ParseUint(e.field("count"), 10, 64); err != nil || !inSequence(n) {
					t.Errorf("told as number %s: %s", e.field("count"), e.Text)
				}
			}
			if counts["foreign-sm"] > 8 || counts["sm-info-refused"] > 8 {
				t.Errorf("told too often: %v", counts)
			}
			theirs.end(syscall.SIGKILL)
			s.ruled(ours, electionTime)
			if got := ours.history(); !slices.Equal(got, before) {
				t.Errorf("ours went through %q", got)
			}
		})
	}
}

// inSequence reports 1, 2, 5, 10, 20, 50, ...
func inSequence(n uint64) bool {
	for n >= 10 && n%10 == 0 {
		n /= 10
	}
	return n == 1 || n == 2 || n == 5
}
