package etcd

import (
	"cmp"
	"fmt"

	"portcullis/api/store"
)

// Health is how a store is.
type Health struct {
	Away  error // why it does not serve; nil while it does
	Short error // why only removals are taken; nil while everything is
	// Warning says what runs short, at 70 % of the quota and above; empty: nothing does.
	Warning string

	Size  int64 // of the database in bytes, with what compaction freed; 0: not known
	InUse int64 // of that, what records take
	Quota int64 // the most that Size may be
	Free  int64 // bytes on the disk of the state directory; negative: not known

	Reserve  bool // the disk holds the reserve for removals
	Restarts int  // how often the member was started again
}

// Shares of the quota, in percent.
const (
	warnShare  = 70 // a warning, and what was freed is given back
	shortShare = 80 // only removals are taken
	clearShare = 97 // an alarm is disarmed below
)

// above reports whether n is at least a share of the quota.
func (h *Health) above(n, share int64) bool { return h.Quota > 0 && 100*n >= share*h.Quota }

// judge derives what is short from sizes.
func (h *Health) judge() {
	h.Short, h.Warning = nil, ""
	disk := fmt.Sprintf("the state directory's disk has %d MiB free", max(h.Free, 0)>>20)
	switch {
	case h.Free >= 0 && !h.Reserve:
		h.Short = fmt.Errorf("%w: %s and no reserve for removals is left, so that nothing but removals is taken: free %d MiB there",
			store.ErrFull, disk, (reserveSize+amplySpace)>>20)
	case h.Free >= 0 && h.Free < shortSpace:
		h.Short = fmt.Errorf("%w: %s, so that nothing but removals is taken: free %d MiB there", store.ErrFull, disk, shortSpace>>20)
	case h.above(h.InUse, shortShare):
		h.Short = fmt.Errorf("%w: its records take %d of %d MiB, so that nothing but removals is taken: remove what is not needed, or raise store_quota",
			store.ErrFull, h.InUse>>20, h.Quota>>20)
	}
	if h.Short != nil {
		h.Warning = h.Short.Error()
	} else if h.above(cmp.Or(h.InUse, h.Size), warnShare) {
		h.Warning = fmt.Sprintf("the store's records take %d of %d MiB: at %d %% nothing but removals is taken; remove what is not needed, or raise store_quota",
			h.InUse>>20, h.Quota>>20, shortShare)
	}
}

// alike reports whether two say the same to an operator.
func (h *Health) alike(o *Health) bool {
	return text(h.Away) == text(o.Away) && text(h.Short) == text(o.Short) && h.Warning == o.Warning && h.Reserve == o.Reserve && h.Restarts == o.Restarts
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
