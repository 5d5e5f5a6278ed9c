package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify sends a state to systemd. Without systemd it does nothing. If sending fails, it logs a line and goes on.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not told", "state", state, "error", err)
	}
}

// notifyReloading sends the state that Type=notify-reload requires before a reload; READY=1 ends it.
func notifyReloading(log *slog.Logger) {
	notify(log, "RELOADING=1\n"+daemon.SdNotifyMonotonicUsec())
}

// watchdog reports to systemd that the service lives, as long as alive says so. It ends with ctx, and at once when systemd
// asked for no watchdog.
func watchdog(ctx context.Context, log *slog.Logger, alive func(context.Context) error) error {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return err
	}
	tick := time.NewTicker(interval / 3)
	defer tick.Stop()
	for {
		check, cancel := context.WithTimeout(ctx, interval/3)
		err := alive(check)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			log.Error("the service does not make progress; systemd will restart it", "error", err)
		default:
			notify(log, daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
