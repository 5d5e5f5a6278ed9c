package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Hangups takes SIGHUP, which would end the program, from now on. A program must do
// so before it says that it is ready, since from then on it may be sent.
func Hangups() chan os.Signal {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	return hup
}

// OnHangup calls f for every SIGHUP until ctx ends.
func OnHangup(ctx context.Context, hup chan os.Signal, f func()) {
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			f()
		}
	}
}
