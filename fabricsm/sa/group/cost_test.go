package group_test

import (
	"encoding/binary"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
)

// TestCostFollowsChange: the allocations and saved facts of a join and a leave hardly grow with the members of the group
// and with the other groups.
func TestCostFollowsChange(t *testing.T) {
	cost := func(members, groups int) (allocs float64, facts int) {
		r := newRig(t, group.Config{})
		f := r.f.Clone()
		f.Top = ib.MaxMulticastLID
		for i := range members {
			f.Add(ib.GUID(0x100000+i), tenantA, 0x7fff)
		}
		r.Follow(f)
		r.f = f
		r.must(r.set(r.making(alice, mgid(1))))
		for i := range groups {
			g := mgid(0)
			binary.BigEndian.PutUint32(g[8:], uint32(i+1))
			q := r.making(alan, g)
			r.Set(q.asker, &q.rec, q.mask)
		}
		for i := range members {
			q := r.joining(ib.GUID(0x100000+i), mgid(1))
			if a := r.Set(q.asker, &q.rec, q.mask); a.Status != mad.StatusOK {
				t.Fatal(a.Events)
			}
		}
		q := r.joining(lim, mgid(1))
		allocs = testing.AllocsPerRun(20, func() {
			in, out := r.Set(q.asker, &q.rec, q.mask), r.Delete(q.asker, &q.rec, q.mask)
			facts = len(in.Save) + len(out.Save)
		})
		// A changed port costs in proportion to its own groups, not to all groups.
		moved := f.With(lim, func(e *portindex.EndPort) { e.LID++ })
		r.Follow(moved)
		return allocs, facts
	}
	small, few := cost(10, 10)
	large, many := cost(5000, 5000)
	if few != 2 || many != 2 {
		t.Errorf("%d and %d facts for a join and a leave, want 2", few, many)
	}
	if large > small+60 {
		t.Errorf("a join and a leave allocate %v times among many, %v among few", large, small)
	}
}
