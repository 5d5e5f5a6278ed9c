package keys

import (
	"errors"
	"fmt"
	"io"
	"time"

	"portcullis/fabricsm/ib"
)

// Mode says where new keys come from.
type Mode string

// Modes.
const (
	// ModeDerived: from a Master. The Master, and the epoch of each device, are all that a backup needs. A reader of the
	// Master has all keys.
	ModeDerived Mode = "derived"
	// ModeRandom: each from the random source. A key reveals nothing about others, and no secret derives them all; a backup
	// has to hold each.
	ModeRandom Mode = "random"
)

// Source makes keys. It is called once for each new key; the result is made durable before its first use.
type Source interface {
	Make(kind Kind, guid ib.GUID, epoch Epoch, now time.Time) (Held, error)
}

// Derived is the Source of ModeDerived.
type Derived struct{ Master Master }

// Make implements Source.
func (d Derived) Make(kind Kind, guid ib.GUID, epoch Epoch, now time.Time) (Held, error) {
	if d.Master.IsZero() {
		return Held{}, errors.New("derive a key: there is no master")
	}
	if epoch == 0 || !kind.Valid() {
		return Held{}, fmt.Errorf("derive a key: no %v of epoch %d is made", kind, epoch)
	}
	return Held{Key: d.Master.Derive(kind, guid, epoch), Epoch: epoch, Origin: OriginDerived, Since: now}, nil
}

// Random is the Source of ModeRandom, over a cryptographic random source. It is
// not for use inside the core, which draws no random numbers.
type Random struct{ Reader io.Reader }

// Make implements Source.
func (r Random) Make(kind Kind, guid ib.GUID, epoch Epoch, now time.Time) (Held, error) {
	if epoch == 0 || !kind.Valid() {
		return Held{}, fmt.Errorf("draw a key: no %v of epoch %d is made", kind, epoch)
	}
	k, err := Draw(r.Reader)
	if err != nil {
		return Held{}, fmt.Errorf("%v of %v: %w", kind, guid, err)
	}
	return Held{Key: k, Epoch: epoch, Origin: OriginRandom, Since: now}, nil
}
