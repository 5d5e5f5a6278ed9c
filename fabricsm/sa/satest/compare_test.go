package satest_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// interview sends queries, in order, each from its host.
func interview(t testing.TB, lab *ibsimlab.Lab, asks []ask) []satest.Answer {
	t.Helper()
	clients := make(map[string]*satest.Client)
	defer func() {
		for _, c := range clients {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	answers := make([]satest.Answer, len(asks))
	silent := make(map[string][]int) // by host
	for i := range asks {
		c := clients[asks[i].host]
		if c == nil {
			var err error
			if c, err = satest.Dial(context.WithoutCancel(t.Context()), lab.Socket(), asks[i].host); err != nil {
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
		again := make([]satest.Question, len(which))
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

// difference is a difference between two answers to a query.
type difference struct {
	*ask
	theirs, ours *satest.Answer
	what         string // silence, method, status, header, records, order

	// Of records: fields in which those of the same RID differ, and how many there are
	// of which the other side has none of that RID.
	fields        []string
	missing, more int
}

func (d *difference) String() string {
	return fmt.Sprintf("%s (from %s): %s:\n  OpenSM: %s\n  ours:   %s", d.name, d.host, d.kind(), show(d.theirs, d.ours), show(d.ours, d.theirs))
}

// kind describes a difference without its records.
func (d *difference) kind() string {
	how := func(a *satest.Answer) string {
		if a.Silent() {
			return "silence"
		}
		return fmt.Sprintf("method %#x, status %#x, RMPP %t", uint8(a.Method), uint16(a.Status), a.Segments > 0)
	}
	switch d.what {
	case "silence", "method", "status":
		return fmt.Sprintf("OpenSM: %s; ours: %s", how(d.theirs), how(d.ours))
	case "records":
		return fmt.Sprintf("records differ in %v, %d are missing, %d too many", d.fields, d.missing, d.more)
	default:
		return d.what + " differs"
	}
}

// distinguish finds out how records differ.
func (d *difference) distinguish() {
	layout, ok := mad.LookupLayout(mad.ClassSubnAdm, d.theirs.Attr)
	if !ok {
		return
	}
	theirs, ours := only(d.theirs, d.ours), only(d.ours, d.theirs)
	from, to := rid(d.theirs.Attr)
	used := make([]bool, len(ours))
	for _, a := range theirs {
		k := -1
		for i, b := range ours {
			if !used[i] && len(a) == len(b) && len(a) >= to && bytes.Equal(a[from:to], b[from:to]) {
				k = i
				break
			}
		}
		if k < 0 {
			d.missing++
			continue
		}
		used[k] = true
		for _, f := range layout.Fields() {
			if name := f.Name; !sameBits(a, ours[k], f.Bit, f.Width*f.Count) && !slices.Contains(d.fields, name) {
				d.fields = append(d.fields, name)
			}
		}
	}
	for _, u := range used {
		if !u {
			d.more++
		}
	}
}

func sameBits(a, b []byte, from, n int) bool {
	for i := from; i < from+n && i/8 < len(a) && i/8 < len(b); i++ {
		if (a[i/8]^b[i/8])&(0x80>>(i%8)) != 0 {
			return false
		}
	}
	return true
}

// rid returns the position of the bytes that identify a record of a table.
func rid(attr mad.AttrID) (from, to int) {
	switch attr {
	case mad.AttrPathRecord:
		return 8, 44
	case mad.AttrMCMemberRecord:
		return 0, 32
	case mad.AttrServiceRecord:
		return 0, 24
	case mad.AttrInformInfoRecord:
		return 0, 18
	case mad.AttrPKeyTableRecord:
		return 0, 5
	default:
		return 0, 4
	}
}

// only returns the records that another answer does not have.
func only(a, other *satest.Answer) (records [][]byte) {
	has := make(map[string]int)
	for _, r := range parts(other) {
		has[string(r)]++
	}
	for _, r := range parts(a) {
		if has[string(r)]--; has[string(r)] < 0 {
			records = append(records, r)
		}
	}
	return records
}

// show describes an answer, and the records that another does not have.
func show(a, other *satest.Answer) string {
	if a.Silent() {
		return "silence"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "method %#x, attribute %s, modifier %#x, status %#x, mask %#x, offset %d, %d segments, aborted %d, SM_Key %#x, %d bytes in %d records",
		uint8(a.Method), nameOf(a.Attr), a.Mod, uint16(a.Status), uint64(a.Mask), a.Offset, a.Segments, a.Aborted, a.Key, len(a.Data), len(a.Records()))
	const most = 3
	for i, r := range only(a, other) {
		if i == most {
			b.WriteString("\n    ...")
			break
		}
		fmt.Fprintf(&b, "\n    %x", bytes.TrimRight(r, "\x00"))
	}
	return b.String()
}

// parts returns the records of a table, or the single record of another answer.
func parts(a *satest.Answer) (records [][]byte) {
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

// fluid lists the bytes of records that depend on the time and place of the query.
var fluid = []struct {
	attr     mad.AttrID
	from, to int
}{
	{mad.AttrSMInfoRecord, 20, 24},   // ActCount counts on
	{mad.AttrPortInfoRecord, 32, 33}, // LocalPortNum of a switch: where the request came in
	{mad.AttrNodeRecord, 40, 41},     // and here
}

// size returns how much of the data of an answer to a Get is the record. After that OpenSM leaves old contents of its
// memory.
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
func compare(q *ask, theirs, ours *satest.Answer) (d difference, differ bool) {
	d = difference{ask: q, theirs: theirs, ours: ours}
	sorted := func(a *satest.Answer) [][]byte {
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
		// The data of an answer with an error has no meaning.
		return d, false
	case !same(sorted(theirs), sorted(ours)):
		d.what = "records"
		d.distinguish()
	case !same(parts(theirs), parts(ours)):
		d.what = "order"
	default:
		return d, false
	}
	return d, true
}

var tellAll = flag.Bool("salab.all", false, "tell every difference from OpenSM")

// judge compares answers to the same queries. Differences that are not accepted fail, the first of them in full. It counts
// the accepted ones.
func judge(t testing.TB, asks []ask, theirs, ours []satest.Answer, used map[string]int) {
	t.Helper()
	most := 40
	if *tellAll {
		most = len(asks)
	}
	bad := 0
	kinds := make(map[string]int)
	defer func() {
		for _, k := range slices.Sorted(maps.Keys(kinds)) {
			t.Logf("%5d %s", kinds[k], k)
		}
	}()
	for i := range asks {
		d, differ := compare(&asks[i], &theirs[i], &ours[i])
		if !differ {
			continue
		}
		if name := acceptedAs(&d); name != "" {
			used[name]++
			continue
		}
		kinds[fmt.Sprintf("%v %s: %s", d.q.Method, nameOf(d.q.Attr), d.kind())]++
		if bad++; bad <= most {
			t.Error(d.String())
		}
	}
	if bad > most {
		t.Errorf("and %d more questions that are answered differently", bad-most)
	}
}
