package chain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// branched returns a log of n entries of which entry at is an operator's decision about a roll-back.
func branched(t *testing.T, n, at int) []Entry {
	t.Helper()
	log := entries(t, "alice", n)
	var head Head
	for i := range log {
		e := &log[i]
		e.Prev = head.Hash
		if i+1 == at {
			e.Action = BranchAction
		}
		var err error
		if e.Hash, err = e.Sum(); err != nil {
			t.Fatal(err)
		}
		head = head.After(e)
	}
	return log
}

// Anchors of before an operator's decision about a roll-back may be of entries that are gone; those of after it, and
// those of a later decision, may not.
func TestCheckOfBranches(t *testing.T) {
	log := branched(t, 6, 4)
	gone := strings.Repeat("ab", 32)
	for _, tt := range []struct {
		name       string
		anchors    []Anchor
		want       string // in the error; empty: none
		superseded int
	}{
		{"of before the roll-back, in the log", []Anchor{{Seq: 2, Hash: log[1].Hash}}, "", 0},
		{"of what was lost", []Anchor{{Seq: 5, Hash: gone}, {Seq: 9, Hash: gone}}, "", 2},
		{"after the decision", []Anchor{{Seq: 5, Hash: log[4].Hash, Branch: 1}}, "", 0},
		{"after the decision, another entry", []Anchor{{Seq: 5, Hash: gone, Branch: 1}}, "audit entry 5 is not the one", 0},
		{"after the decision, behind the end", []Anchor{{Seq: 7, Hash: gone, Branch: 1}}, "the log ends at entry 6", 0},
		{"after another decision", []Anchor{{Seq: 3, Hash: gone, Branch: 2}}, "before an operator's decision", 0},
	} {
		c, k := Chain{}, Check{Anchors: tt.anchors}
		for i := range log {
			k.Add(&log[i])
			if err := c.Add(&log[i]); err != nil {
				t.Fatal(err)
			}
		}
		if c.Head().Branch != 1 {
			t.Fatalf("head %+v, want branch 1", c.Head())
		}
		err := k.End(c.Head())
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
		if n := k.Superseded(c.Head()); err == nil && n != tt.superseded {
			t.Errorf("%s: %d superseded, want %d", tt.name, n, tt.superseded)
		}
	}
}

// Anchors are found in lines of a system log, and a line that was cut off hides none that follows.
func TestReadAnchorsOfOthers(t *testing.T) {
	a := Anchor{Time: time.Unix(7, 0).UTC(), Service: "sm-1", Branch: 2, Seq: 3, Hash: strings.Repeat("cd", 32), JWS: "a..b"}
	line, err := a.Line()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain":     string(line),
		"syslog":    "Nov 26 16:00:00 sm-1 portcullisd[7]: " + Marker + string(line),
		"RFC 5424":  "<109>1 2026-11-26T16:00:00Z sm-1 portcullisd 7 anchor - " + Marker + string(line),
		"a cut off": `{"time":"2026-` + CutOff + string(line),
	} {
		got, err := ReadAnchors(strings.NewReader(text))
		if err != nil || len(got) != 1 || got[0] != a {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, a)
		}
	}
	got, err := ReadAnchors(strings.NewReader("other: line\n" + strings.Repeat("x", 3*maxAnchorLine) + "\n" + string(line)))
	if err == nil || !strings.Contains(err.Error(), "line 1:") || len(got) != 1 || got[0] != a {
		t.Errorf("%+v, %v; want the anchor, and an error about line 1", got, err)
	}
}

func TestContent(t *testing.T) {
	a := Anchor{Seq: 3, Hash: "x", JWS: "a..b"}
	content, err := a.Content()
	if err != nil || strings.Contains(string(content), "jws") || a.JWS == "" {
		t.Errorf("content %s, %v, of %+v", content, err, a)
	}
}

func FuzzReadAnchors(f *testing.F) {
	f.Add(`{"time":"2026-01-02T03:04:05Z","seq":1,"hash":"` + strings.Repeat("ab", 32) + "\"}\n")
	f.Add("x " + Marker + "seq=1 hash=" + strings.Repeat("ab", 32) + " service=\"a=b\" at=2026-01-02T03:04:05Z\n")
	f.Add("x " + Marker + "{}\n" + `{"time":"2026-` + CutOff)
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := ReadAnchors(strings.NewReader(text))
		for i := range list {
			if list[i].Seq == 0 || len(list[i].Hash) != 64 || i > 0 && list[i].Seq < list[i-1].Seq {
				t.Fatalf("anchors %+v", list)
			}
			// The output reads the same as the input. JSON replaces bytes that are no UTF-8 once.
			line, err := list[i].Line()
			if err != nil {
				t.Fatal(err)
			}
			var again Anchor
			if err := json.Unmarshal(line, &again); err != nil || again.Seq != list[i].Seq || again.Hash != list[i].Hash || again.Branch != list[i].Branch {
				t.Fatalf("%s reads as %+v, %v", line, again, err)
			}
		}
	})
}
