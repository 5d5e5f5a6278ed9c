package systemd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kept is a notifier that keeps what it sends.
type kept struct {
	*Notifier
	states []string
	log    bytes.Buffer
}

func newKept() *kept {
	t := &kept{}
	t.Notifier = &Notifier{log: slog.New(slog.NewTextHandler(&t.log, nil)), send: func(state string) error {
		t.states = append(t.states, state)
		return nil
	}}
	return t
}

func TestStates(t *testing.T) {
	t.Parallel()
	n := newKept()
	n.Status("opening")
	n.Ready()
	n.Reloading()
	n.Stopping()
	if len(n.states) != 4 || !strings.HasPrefix(n.states[2], "RELOADING=1\nMONOTONIC_USEC=") {
		t.Fatalf("sent %q", n.states)
	}
	n.states[2] = "RELOADING=1"
	if d := cmp.Diff([]string{"STATUS=opening", "READY=1", "RELOADING=1", "STOPPING=1"}, n.states); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
}

// A state that cannot be sent is a line in the log.
func TestStateThatIsNotSent(t *testing.T) {
	t.Parallel()
	n := newKept()
	n.send = func(string) error { return errors.New("no socket") }
	n.Ready()
	if got := n.log.String(); !strings.Contains(got, "systemd was not notified") || !strings.Contains(got, "READY=1") || !strings.Contains(got, "no socket") {
		t.Errorf("the log says %q", got)
	}
}

// A long start asks for a minute more every ten seconds.
func TestExtend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newKept()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		n.Extend(ctx)
		want := []string{"EXTEND_TIMEOUT_USEC=60000000", "EXTEND_TIMEOUT_USEC=60000000"}
		if d := cmp.Diff(want, n.states); d != "" {
			t.Errorf("states (-want +got):\n%s", d)
		}
	})
}

// The service is reported three times within the interval, and not while it makes no progress. A question without an
// answer ends before the next.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newKept()
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		asked := 0
		n.watch(ctx, 3*time.Second, func(ctx context.Context) error {
			if asked++; asked == 2 {
				<-ctx.Done()
				return errors.New("the loop stands still")
			}
			return nil
		})
		if d := cmp.Diff([]string{"WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"}, n.states); d != "" || asked != 4 {
			t.Errorf("states after %d questions (-want +got):\n%s", asked, d)
		}
		if got := n.log.String(); strings.Count(got, "does not make progress") != 1 || !strings.Contains(got, "the loop stands still") {
			t.Errorf("the log says %q", got)
		}
	})
}
