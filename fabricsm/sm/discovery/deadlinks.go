package discovery

import (
	"time"

	"portcullis/fabricsm/ib"
)

// deadPair is the longest time between the silence of two links that are reported together. A cable that is moved is out of
// its place for longer than the tries of a probe.
const deadPair = 30 * time.Second

// maxDead bounds the silent links that are remembered to be reported with others.
const maxDead = 64

// DeadLinks are the links that fell silent last, behind which a device with an M_Key was looked for in vain.
type DeadLinks struct{ list []deadLink }

type deadLink struct {
	at    ib.Place
	since time.Time
}

// Add records that a link is silent. It returns the link that fell silent shortly before this one and still is, or zero.
func (d *DeadLinks) Add(at ib.Place, now time.Time, isSilent func(ib.Place) bool) (with ib.Place) {
	kept := d.list[:0]
	for _, l := range d.list {
		if !isSilent(l.at) || l.at == at || now.Sub(l.since) > deadPair {
			continue
		}
		kept = append(kept, l)
		with = l.at
	}
	if d.list = append(kept, deadLink{at, now}); len(d.list) > maxDead {
		d.list = d.list[1:]
	}
	return with
}
