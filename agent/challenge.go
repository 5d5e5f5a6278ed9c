package agent

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"portcullis/agent/lock"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// looser is what a file for an adapter can be bound to, where it is not a challenge.
type looser struct {
	to  string // v1.BoundDevice or v1.BoundBoard; "": a challenge
	why string
}

// macOf reads the MAC of a statement; 0: it is not known.
func macOf(s string) uint64 {
	v, err := strconv.ParseUint(s, 16, 48)
	if err != nil {
		return 0
	}
	return v
}

// draw has the adapter draw a challenge, unless it is known by now that it takes no file
// for one, or is locked. Why there is none goes to the service, which says what will do.
func (a *openAdapter) draw(ctx context.Context, log *slog.Logger, known looser) {
	a.offered = known
	if a.MAC == 0 && a.offered.to == "" {
		a.offered = looser{v1.BoundBoard, "its base MAC cannot be read"}
	}
	if a.offered.to != "" || a.locked() {
		return
	}
	var err error
	if a.drawn, err = a.Draw(ctx); err != nil {
		a.offered = looser{v1.BoundDevice, err.Error()}
		log.Warn("no challenge was drawn; the service decides whether a file for the device is enough (locks.binding)", "adapter", a.Name, "node_guid", a.facts.NodeGUID, "error", err)
	}
}

func (a *openAdapter) locked() bool { return a.facts.Lock.MLOCK == attest.MLOCKLocked }

// offer says what a file for the adapter can be bound to.
func (a *openAdapter) offer(in *v1.LockAdapter) {
	in.Less, in.Locked = plainText(a.offered.why), a.locked()
	if a.offered.to != v1.BoundBoard && a.MAC != 0 {
		in.Device = a.facts.BaseMAC
	}
	if c := a.drawn; c != nil {
		in.Challenge = &v1.LockChallenge{Device: fmt.Sprintf("%012x", c.MAC), PSID: c.PSID, Nonce: hex.EncodeToString(c.Nonce[:])}
	}
}

// maxLess is how much the service takes of why there is no challenge.
const maxLess = 300

// plainText keeps what the service takes.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), maxLess)]
}

// drop ends what the adapter drew, if a run ends before a file answered it.
func (a *openAdapter) drop(ctx context.Context, log *slog.Logger) {
	if a.drawn == nil {
		return
	}
	if err := a.Drop(context.WithoutCancel(ctx)); err != nil {
		log.Warn("the adapter's challenge stays until its firmware is reset; evidence will report a session", "adapter", a.Name, "error", err)
	}
	a.drawn = nil
}

// loosen reports a file that the adapter refused and that may be taken if it is bound to
// less. It is asked for in the next round; whether it will do the service says.
func (r *run) loosen(a *openAdapter, err error) bool {
	if !lock.MayTakeLess(err) || a.offered.to == v1.BoundBoard {
		return false
	}
	next := looser{to: v1.BoundBoard}
	was := v1.BoundDevice
	if a.drawn != nil {
		next.to, was = v1.BoundDevice, v1.BoundChallenge
	}
	why, _ := errors.AsType[lock.RefusedFile](err)
	next.why = fmt.Sprintf("it refused a file that is bound to its %s: %v", was, why)
	if r.loosened == nil {
		r.loosened = map[ib.GUID]looser{}
	}
	r.loosened[a.facts.NodeGUID] = next
	r.log.Warn("the adapter refused a file; the service is asked for one with a weaker binding", "adapter", a.Name, "node_guid", a.facts.NodeGUID, "bound_to", was, "error", err)
	return true
}
