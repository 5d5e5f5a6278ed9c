package keys

import (
	"fmt"
	"io"
	"time"

	"portcullis/fabricsm/ib"
)

// MostDrawn is a reserve that is enough for a key for each LID of a full subnet
// and more, so that it lasts from one Fill to the next.
const MostDrawn = 65536

// Drawn is the Source of ModeRandom for a core that draws no random numbers: it returns, in order, keys that Fill drew
// before. The same keys and the same calls lead to the same results. Keys that were not returned are lost with the process.
// This does no harm: a key is made durable before its first use.
//
// Fill and Make must not be called at the same time.
type Drawn struct {
	random  io.Reader
	reserve []Key
	size    int
}

// NewDrawn draws a reserve of size keys from a cryptographic random source.
func NewDrawn(random io.Reader, size int) (*Drawn, error) {
	d := &Drawn{random: random, size: size}
	return d, d.Fill()
}

// Fill completes the reserve if half of it was used.
func (d *Drawn) Fill() error {
	if len(d.reserve) > d.size/2 {
		return nil
	}
	for len(d.reserve) < d.size {
		k, err := Draw(d.random)
		if err != nil {
			return err
		}
		d.reserve = append(d.reserve, k)
	}
	return nil
}

// Make implements Source.
func (d *Drawn) Make(kind Kind, guid ib.GUID, epoch Epoch, now time.Time) (Held, error) {
	if epoch == 0 || !kind.Valid() {
		return Held{}, fmt.Errorf("draw a key: no %v of epoch %d is made", kind, epoch)
	}
	if len(d.reserve) == 0 {
		return Held{}, fmt.Errorf("%v of %v: the keys that were drawn are used up, and more follow", kind, guid)
	}
	last := len(d.reserve) - 1
	k := d.reserve[last]
	d.reserve[last] = Key{}
	d.reserve = d.reserve[:last]
	return Held{Key: k, Epoch: epoch, Origin: OriginRandom, Since: now}, nil
}
