package salab_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/salab"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// interview puts questions, in order, each from its host.
func interview(t testing.TB, lab *ibsimlab.Lab, asks []ask) []salab.Answer {
	t.Helper()
	clients := make(map[string]*salab.Client)
	defer func() {
		for _, c := range clients {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	answers := make([]salab.Answer, len(asks))
	silent := make(map[string][]int) // by host
	for i := range asks {
		c := clients[asks[i].host]
		if c == nil {
			var err error
			if c, err = salab.Dial(context.WithoutCancel(t.Context()), lab.Socket(), asks[i].host); err != nil {
				t.Fatal(err)
			}
			clients[asks[i].host] = c
		}
		a, err := c.Ask(asks[i].q)
		if err != nil {
			t.Errorf("%s from %s: %v", asks[i].name, asks[i].host, err)
		}
		if answers[i] = a; a.Silent() {
			silent[asks[i].host] = append(silent[asks[i].host], i)
		}
	}
	for host, which := range silent {
		again := make([]salab.Question, len(which))
		for k, i := range which {
			again[k] = asks[i].q
		}
		late, err := clients[host].Confirm(again)
		if err != nil {
			t.Error(err)
			continue
		}
		for k, i := range which {
			answers[i] = late[k]
		}
	}
	return answers
}

// difference is one between two answers to a question.
type difference struct {
	*ask
	theirs, ours *salab.Answer
	what         string // silence, method, status, header, records, order
}

func (d *difference) String() string {
	return fmt.Sprintf("%s (from %s): %s differs:\n  OpenSM: %s\n  ours:   %s", d.name, d.host, d.what, show(d.theirs, d.ours), show(d.ours, d.theirs))
}

// show tells an answer, and records that another does not have.
func show(a, other *salab.Answer) string {
	if a.Silent() {
		return "silence"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "method %#x, attribute %v, modifier %#x, status %#x, mask %#x, offset %d, %d segments, aborted %d, SM_Key %#x, %d bytes in %d records",
		uint8(a.Method), a.Attr, a.Mod, uint16(a.Status), uint64(a.Mask), a.Offset, a.Segments, a.Aborted, a.Key, len(a.Data), len(a.Records()))
	const most = 3
	shown := 0
	others := parts(other)
	for _, r := range parts(a) {
		if !slices.ContainsFunc(others, func(o []byte) bool { return bytes.Equal(o, r) }) {
			if shown++; shown > most {
				b.WriteString("\n    ...")
				break
			}
			fmt.Fprintf(&b, "\n    %x", bytes.TrimRight(r, "\x00"))
		}
	}
	return b.String()
}

// parts are the records of a table, or the one that is no table.
func parts(a *salab.Answer) (records [][]byte) {
	switch {
	case a.Segments > 0:
		records = a.Records()
	case len(a.Data) > 0:
		records = [][]byte{a.Data[:size(a.Attr)]}
	}
	for i, r := range records {
		for _, f := range fluid {
			if f.attr == a.Attr && len(r) >= f.to {
				r = slices.Clone(r)
				clear(r[f.from:f.to])
				records[i] = r
			}
		}
	}
	return records
}

// fluid are bytes of records that depend on when and how somebody looked.
var fluid = []struct {
	attr     mad.AttrID
	from, to int
}{
	{mad.AttrSMInfoRecord, 20, 24},   // ActCount counts on
	{mad.AttrPortInfoRecord, 32, 33}, // LocalPortNum of a switch: where the request came in
	{mad.AttrNodeRecord, 40, 41},     // and here
}

// size is how much of the data of an answer to a Get is the record. OpenSM leaves what
// was in its memory behind that; TestNothingBehindRecords shows that we do not.
func size(attr mad.AttrID) int {
	for _, e := range tables {
		if e.attr == attr {
			return e.size
		}
	}
	if n, ok := others[attr]; ok {
		return n
	}
	return mad.SADataSize
}

// compare finds the first thing in which two answers differ.
func compare(q *ask, theirs, ours *salab.Answer) (d difference, differ bool) {
	d = difference{ask: q, theirs: theirs, ours: ours}
	sorted := func(a *salab.Answer) [][]byte {
		p := slices.Clone(parts(a))
		slices.SortFunc(p, bytes.Compare)
		return p
	}
	same := func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }
	switch {
	case theirs.Silent() != ours.Silent():
		d.what = "silence"
	case theirs.Method != ours.Method || (theirs.Segments > 0) != (ours.Segments > 0) || theirs.Aborted != ours.Aborted:
		d.what = "method"
	case theirs.Status != ours.Status:
		d.what = "status"
	case theirs.Attr != ours.Attr || theirs.Mod != ours.Mod || theirs.Mask != ours.Mask || theirs.Offset != ours.Offset || ours.Key != 0:
		d.what = "header"
	case theirs.Status != 0:
		// What stands in the data beside an error means nothing.
		return d, false
	case !same(sorted(theirs), sorted(ours)):
		d.what = "records"
	case !same(parts(theirs), parts(ours)):
		d.what = "order"
	default:
		return d, false
	}
	return d, true
}

// judge compares answers to the same questions. Differences that are not accepted
// fail, the first of them in full. It counts those that are accepted.
func judge(t testing.TB, asks []ask, theirs, ours []salab.Answer, used map[string]int) {
	t.Helper()
	const most = 40
	bad := 0
	for i := range asks {
		d, differ := compare(&asks[i], &theirs[i], &ours[i])
		if !differ {
			continue
		}
		if name := acceptedAs(&d); name != "" {
			used[name]++
			continue
		}
		if bad++; bad <= most {
			t.Error(d.String())
		}
	}
	if bad > most {
		t.Errorf("and %d more questions that are answered differently", bad-most)
	}
}
