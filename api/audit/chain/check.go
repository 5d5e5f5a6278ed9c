package chain

import (
	"fmt"
	"time"
)

// Check compares anchors with a chain while it is verified. Anchors must be by Seq.
//
// Anchors of an earlier branch than the chain's date from before an operator accepted a state that was rolled back. The
// decisions between that state and them are not in the chain, as the operator knows; they are only counted.
type Check struct {
	Anchors []Anchor
	met     int
	differ  []int // which anchors are of another entry than the chain has
}

// Add compares the anchors of an entry with it. Entries come in the order of the log.
func (k *Check) Add(e *Entry) {
	for ; k.met < len(k.Anchors) && k.Anchors[k.met].Seq <= e.Seq; k.met++ {
		if a := &k.Anchors[k.met]; a.Seq == e.Seq && a.Hash != e.Hash {
			k.differ = append(k.differ, k.met)
		}
	}
}

// Differ reports an anchor that is of another entry than the log has, if there is one that must not be.
func (k *Check) Differ(h Head) error {
	for _, i := range k.differ {
		if a := &k.Anchors[i]; a.Branch == h.Branch {
			return fmt.Errorf("audit entry %d is not the one with hash %.12s that was anchored at %s: the log was rewritten, or the state was restored and went on from an older one",
				a.Seq, a.Hash, a.Time.Format(time.RFC3339))
		}
	}
	return nil
}

// End reports what Differ does, and anchors that are behind the end of the log.
func (k *Check) End(h Head) error {
	if err := k.Differ(h); err != nil {
		return err
	}
	var last *Anchor
	for i := range k.Anchors {
		a := &k.Anchors[i]
		if ahead := a.Branch > h.Branch || a.Branch == h.Branch && a.Seq > h.Seq; ahead && (last == nil || a.Later(last)) {
			last = a
		}
	}
	switch {
	case last == nil:
		return nil
	case last.Branch > h.Branch:
		return fmt.Errorf("audit entry %d was anchored at %s on branch %d, and the log is on branch %d: the state was rolled back to before an operator's decision about an earlier roll-back",
			last.Seq, last.Time.Format(time.RFC3339), last.Branch, h.Branch)
	}
	return fmt.Errorf("audit entry %d was anchored at %s, and the log ends at entry %d: the state was rolled back, and what was decided since is gone",
		last.Seq, last.Time.Format(time.RFC3339), h.Seq)
}

// Superseded returns how many anchors are of an earlier branch and not in the log.
func (k *Check) Superseded(h Head) (n int) {
	for _, i := range k.differ {
		if k.Anchors[i].Branch < h.Branch {
			n++
		}
	}
	for i := k.met; i < len(k.Anchors); i++ {
		if k.Anchors[i].Branch < h.Branch {
			n++
		}
	}
	return n
}
