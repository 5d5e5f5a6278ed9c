package query

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/trust"
)

// violationSeed is that of all sums of this process.
var violationSeed = maphash.MakeSeed()

// violationSum is the sum of the violations of a view and of a state of subnet administration.
type violationSum struct {
	of    *index
	admin *sa.Status
	sum   uint64
}

// ViolationSum returns a number that is another one when Violations has other rows than before, or other counts, times or
// verdicts in them. Names of hosts and tenants are not in it. Its error is that of Violations. It costs nothing while the Subnet Manager shows nothing else.
func (o *Observer) ViolationSum() (uint64, error) {
	x := o.newest.Load()
	if x == nil {
		return 0, unseen()
	}
	admin := o.administration.Load()
	if was := o.summed.Load(); was != nil && was.of == x && was.admin == admin {
		return was.sum, nil
	}
	var h maphash.Hash
	h.SetSeed(violationSeed)
	row := func(id uint64, last time.Time, more ...uint64) {
		b := binary.BigEndian.AppendUint64(nil, id)
		b = binary.BigEndian.AppendUint64(b, uint64(last.UnixNano())) //nolint:gosec // as bits
		for _, v := range more {
			b = binary.BigEndian.AppendUint64(b, v)
		}
		h.Write(b)
	}
	if all := x.View.Violations; all != nil {
		for i := range all.Rows {
			v := &all.Rows[i]
			row(v.ID, v.Last, uint64(v.Verdict), v.Count, v.Repeats, v.Counted)
		}
	}
	if admin != nil {
		for _, list := range [][]trust.Violation{admin.Violations, admin.Front.Violations} {
			h.WriteByte(0)
			for i := range list {
				row(list[i].ID, list[i].Last, uint64(list[i].Verdict), list[i].Count)
			}
		}
	}
	now := &violationSum{of: x, admin: admin, sum: h.Sum64()}
	o.summed.Store(now)
	return now.sum, nil
}
