package main

import (
	"strings"
	"testing"
	"time"
)

// TestWriters: a second writer is found, and a handover is none.
func TestWriters(t *testing.T) {
	t.Parallel()
	type at struct {
		ms   int
		a, b uint64
	}
	for _, c := range []struct {
		name   string
		counts []at
		want   string
	}{
		{"one", []at{{0, 5, 5}, {20, 6, 5}, {40, 9, 5}}, ""},
		{"handover", []at{{0, 5, 5}, {20, 6, 5}, {40, 6, 8}, {60, 6, 9}, {2000, 6, 10}}, ""},
		{"handover within a count", []at{{0, 5, 5}, {20, 6, 5}, {40, 7, 8}, {60, 7, 9}}, ""},
		{"and back much later", []at{{0, 5, 5}, {20, 6, 5}, {40, 6, 8}, {600, 7, 8}}, ""},
		{"the old one writes again", []at{{0, 5, 5}, {20, 6, 5}, {40, 6, 8}, {300, 7, 8}}, "TWO WRITERS: a sent 1 Sets"},
		{"both all the time", []at{{0, 5, 5}, {20, 6, 6}, {40, 7, 7}}, "TWO WRITERS"},
	} {
		var w writers
		var err error
		begin := time.Unix(1000, 0)
		for _, n := range c.counts {
			if err = w.note(begin.Add(time.Duration(n.ms)*time.Millisecond), map[string]uint64{"a": n.a, "b": n.b}); err != nil {
				break
			}
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestOutside: a Set in the term of another instance is found.
func TestOutside(t *testing.T) {
	t.Parallel()
	nodeOf := func(instance string) string { return "node of " + instance }
	before := map[string]uint64{"node of a": 5, "node of b": 5}
	a1, a2, b2 := term{"a", 1}, term{"a", 2}, term{"b", 2}
	for _, c := range []struct {
		name          string
		first, second term
		a, b          uint64
		found         bool
	}{
		{"the leader", a1, a1, 9, 5, false},
		{"another", a1, a1, 5, 6, true},
		{"both", a1, a1, 6, 6, true},
		{"another after the term", a1, b2, 5, 6, false},
		{"another between two terms", a1, a2, 5, 6, false},
		{"no leader known", term{}, term{}, 5, 6, false},
		{"nothing", b2, b2, 5, 5, false},
	} {
		err := outside(c.first, c.second, before, map[string]uint64{"node of a": c.a, "node of b": c.b}, nodeOf)
		if (err != nil) != c.found {
			t.Errorf("%s: %v, want an error: %t", c.name, err, c.found)
		}
	}
}

// TestAcks: a tenant that is uncertain is not judged.
func TestAcks(t *testing.T) {
	t.Parallel()
	a := newAcks()
	a.set("kept", true, false)
	a.set("deleted", true, false)
	a.set("deleted", false, false) // the deletion is asked for
	a.set("deleted", false, true)
	a.set("uncertain", true, false)
	a.set("uncertain", false, false)
	there, gone := a.copies()
	for _, c := range []struct {
		shown []string
		want  string
	}{
		{[]string{"kept"}, ""},
		{[]string{"kept", "uncertain", "acme"}, ""},
		{nil, "creation of tenant kept"},
		{[]string{"kept", "deleted"}, "deletion of tenant deleted"},
	} {
		shown := map[string]bool{}
		for _, name := range c.shown {
			shown[name] = true
		}
		err := missing(there, there, gone, shown)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("shown %v: %v, want %q", c.shown, err, c.want)
		}
	}
}

// TestParseStat: a process's name can look like the rest of the line.
func TestParseStat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"17 (portcullisd) S 12 17 17 0":  {17, 12},
		"18 (a) R 3 (b) T 14 17 17 0 -1": {18, 14},
		"":                               {0, 0},
		"19 (portcullisd":                {0, 0},
		"20 (portcullisd) S":             {0, 0},
	} {
		pid, parent, ok := parseStat(text)
		if ok != (want[0] != 0) || ok && (pid != want[0] || parent != want[1]) {
			t.Errorf("%q: %d, %d, %t; want %v", text, pid, parent, ok, want)
		}
	}
}

// TestTermCount: an instance that never answered is no instance that was judged.
func TestTermCount(t *testing.T) {
	t.Parallel()
	nodes := []*instance{{number: 0}, {number: 1}}
	var c termCount
	c.add(nodes[0].name(), term{}, term{"a", 1})
	c.add(nodes[0].name(), term{"a", 1}, term{"a", 1})
	c.add(nodes[1].name(), term{"a", 1}, term{"b", 2})
	c.add(nodes[1].name(), term{"b", 2}, term{})
	if _, _, err := c.judged(nodes); err == nil || !strings.Contains(err.Error(), nodes[1].name()) {
		t.Errorf("%s named no term twice: %v", nodes[1].name(), err)
	}
	c.add(nodes[1].name(), term{"b", 2}, term{"b", 2})
	if spans, terms, err := c.judged(nodes); spans != 2 || terms != 2 || err != nil {
		t.Errorf("%d spans in %d terms, %v; want 2 in 2", spans, terms, err)
	}
}
