package keys

import (
	"cmp"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
)

// Why says why a device's key is old.
type Why string

// Reasons for an old key.
const (
	WhySingle   Why = "no dual keys"    // the device would lose its key for a moment: it is not rotated
	WhyUnknown  Why = "not settled"     // it is not known which of two keys it is on
	WhyImported Why = "taken over"      // from another subnet manager, and never changed since
	WhyOverdue  Why = "not yet rotated" // older than two periods
)

// Age is a device whose key was not changed as others were.
type Age struct {
	Kind  Kind          `json:"kind"`
	GUID  ib.GUID       `json:"guid"`
	Epoch Epoch         `json:"epoch"`
	Age   time.Duration `json:"age"`
	Why   Why           `json:"why"`
}

// Ages lists devices whose keys are not changed, or were not when their turn
// was, the oldest first. dual says which can be; period is that of rotation, 0
// if it is off.
func Ages(records []Record, now time.Time, period time.Duration, dual func(Kind, ib.GUID) bool) []Age {
	var out []Age
	for i := range records {
		r := &records[i]
		h := r.Current
		if h.IsZero() || !r.Kind.OfDevice() {
			continue
		}
		a := Age{Kind: r.Kind, GUID: r.GUID, Epoch: h.Epoch, Age: now.Sub(h.Since)}
		switch {
		case !r.Pending.IsZero():
			a.Why = WhyUnknown
		case !dual(r.Kind, r.GUID):
			a.Why = WhySingle
		case h.Origin == OriginImported:
			a.Why = WhyImported
		case period > 0 && a.Age > 2*period:
			a.Why = WhyOverdue
		default:
			continue
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Age) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.GUID, b.GUID))
	})
	return out
}
