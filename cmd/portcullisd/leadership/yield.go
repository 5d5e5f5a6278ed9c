package leadership

import (
	"context"
	"log/slog"
	"time"

	"portcullis/api/leader"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Candidate is an instance that leads whenever it can.
type Candidate interface {
	State() (now leader.State, left time.Duration)
	Others(ctx context.Context) ([]string, error)
	StepDown(ctx context.Context, rest time.Duration) error
	Run(ctx context.Context, lead func(context.Context, *leader.Term) error) error
}

// MayWrite reports whether this instance may write to the fabric now. Without a candidate it is the only one.
func MayWrite(c Candidate) bool {
	if c == nil {
		return true
	}
	_, left := c.State()
	return left > 0
}

// Yielder has another instance lead, if there is one, where this one cannot manage the fabric.
type Yielder struct {
	Candidate Candidate // nil: this instance is the only one
	Lease     time.Duration
	Log       *slog.Logger
}

// Yield has another instance lead. For the time of rest this one does not try to lead again.
func (y *Yielder) Yield(ctx context.Context, rest time.Duration, reason string) {
	if y.Candidate == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, y.Lease)
	defer cancel()
	if err := y.Candidate.StepDown(ctx, rest); err != nil {
		y.Log.Debug("no other instance leads in place of this one", "reason", err)
		return
	}
	y.Log.Warn("another instance is to lead, since this one does not reach the fabric", "reason", reason)
}

// blindFor is how long a leader may see nothing of the fabric before it yields. A cable that
// is put back at once is no reason to change leaders.
const blindFor = 2 * time.Second

// Blindness says whether the leader sees nothing of the fabric. It is of one attachment.
type Blindness struct{ news chan string }

// NewBlindness returns one that has seen no view.
func NewBlindness() *Blindness { return &Blindness{make(chan string, 1)} }

// seesNothing returns why the leader sees nothing of the fabric, "" if it sees some of it, or is still to find out. The
// sight in the store may be that of an earlier leader.
func seesNothing(v *sm.View) string {
	own := v.Fabric.PortByGUID(v.GUID)
	switch {
	case own != topo.None && v.Fabric.Port(own).State == ib.PortDown:
		return "its own port has no link"
	case v.State == ib.SMMaster && v.Fabric.NumNodes() <= 1:
		return "nothing but its own adapter answers"
	default:
		return ""
	}
}

// OnView takes a view of the subnet manager. One goroutine calls it; it does not block.
func (b *Blindness) OnView(v *sm.View) { b.tell(seesNothing(v)) }

func (b *Blindness) tell(reason string) {
	select {
	case <-b.news: // that was not taken
	default:
	}
	select {
	case b.news <- reason:
	default:
	}
}

// Watch calls yield when the leader has seen nothing of the fabric for blindFor, and again after each such time, until ctx ends.
func (b *Blindness) Watch(ctx context.Context, yield func(ctx context.Context, rest time.Duration, reason string)) {
	var since <-chan time.Time
	reason := ""
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-b.news:
			if now == "" {
				since = nil
			} else if reason = now; since == nil {
				since = time.After(blindFor)
			}
		case <-since:
			yield(ctx, time.Second, reason)
			since = time.After(blindFor) // where no other instance could lead
		}
	}
}
