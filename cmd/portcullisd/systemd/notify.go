// Package systemd reports to systemd how the service is, and takes the sockets that systemd passes.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

const (
	// extendEvery is how often systemd is asked for more time while a start takes long, and extendBy how much it is
	// asked for.
	extendEvery = 10 * time.Second
	extendBy    = 60 * time.Second
)

// Notifier sends states to systemd. A state that cannot be sent is a line in the log.
type Notifier struct {
	send func(state string) error
	log  *slog.Logger
}

// New returns a notifier. Without systemd it sends nothing.
func New(log *slog.Logger) *Notifier {
	return &Notifier{log: log, send: func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}}
}

// Send sends a state.
func (n *Notifier) Send(state string) {
	if err := n.send(state); err != nil {
		n.log.Warn("systemd was not notified", "state", state, "error", err)
	}
}

// Status sends a line for people.
func (n *Notifier) Status(line string) { n.Send("STATUS=" + line) }

// Ready sends that the service serves, after its start and after a reload.
func (n *Notifier) Ready() { n.Send(daemon.SdNotifyReady) }

// Stopping sends that the service ends.
func (n *Notifier) Stopping() { n.Send(daemon.SdNotifyStopping) }

// Reloading sends the state that Type=notify-reload requires before a reload; Ready ends it.
func (n *Notifier) Reloading() { n.Send("RELOADING=1\n" + daemon.SdNotifyMonotonicUsec()) }

// Extend asks systemd, until ctx ends, not to abort a start that takes long.
func (n *Notifier) Extend(ctx context.Context) {
	tick := time.NewTicker(extendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.Send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()))
		}
	}
}

// Watchdog reports that the service lives, as long as alive returns nil. It ends with ctx, and at once where systemd wants no
// reports.
func (n *Notifier) Watchdog(ctx context.Context, alive func(context.Context) error) error {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return err
	}
	n.watch(ctx, interval, alive)
	return nil
}

// watch reports three times within interval.
func (n *Notifier) watch(ctx context.Context, interval time.Duration, alive func(context.Context) error) {
	tick := time.NewTicker(interval / 3)
	defer tick.Stop()
	for {
		check, cancel := context.WithTimeout(ctx, interval/3)
		err := alive(check)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.log.Error("the service does not make progress; systemd will restart it", "error", err)
		default:
			n.Send(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
