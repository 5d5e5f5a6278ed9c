package group_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
)

// mirror is the state that a Subnet Manager derives from its input.
type mirror struct {
	lids  map[ib.LID]bool
	joins map[multicast.Join]ib.JoinState // without State
}

func newMirror() *mirror {
	return &mirror{lids: make(map[ib.LID]bool), joins: make(map[multicast.Join]ib.JoinState)}
}

// take applies changes in the order of the Subnet Manager, and fails on changes that would be invalid for it.
func (m *mirror) take(t testing.TB, c *sm.GroupsChanged) {
	t.Helper()
	if c == nil {
		return
	}
	for _, lid := range c.Gone {
		if !m.lids[lid] {
			t.Fatalf("0x%04x goes that was not there", uint16(lid))
		}
		delete(m.lids, lid)
		maps.DeleteFunc(m.joins, func(j multicast.Join, _ ib.JoinState) bool { return j.MLID == lid })
	}
	for _, lid := range c.Made {
		if m.lids[lid] || !lid.IsMulticast() {
			t.Fatalf("0x%04x is made and was there", uint16(lid))
		}
		m.lids[lid] = true
	}
	for _, j := range c.Joins {
		if !m.lids[j.MLID] {
			t.Fatalf("%+v joins what is not there", j)
		}
		k := multicast.Join{MLID: j.MLID, GUID: j.GUID}
		if delete(m.joins, k); j.State != 0 {
			m.joins[k] = j.State
		}
	}
}

// same compares the mirror with the complete input that a starting Subnet Manager gets.
func (m *mirror) same(t testing.TB, in *sm.GroupsSet) {
	t.Helper()
	all := newMirror()
	all.take(t, &sm.GroupsChanged{Made: in.MLIDs, Joins: in.Joins})
	if d := cmp.Diff(all.lids, m.lids); d != "" {
		t.Fatalf("multicast LIDs (-told at a start +told by changes):\n%s", d)
	}
	if d := cmp.Diff(all.joins, m.joins); d != "" {
		t.Fatalf("joins (-told at a start +told by changes):\n%s", d)
	}
}
