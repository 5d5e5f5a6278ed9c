package tamper

import (
	"context"
	"log/slog"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/storage"
)

// Clock is what keeps the time.
type Clock interface {
	Read(ctx context.Context) error
	Halter
}

// Halter reports whether the clock of the machine is believed.
type Halter interface {
	Halted() error // why nothing new is granted; nil while the clock is believed
}

// ReadClock compares the clock with the time that is recorded. It returns nil only when that was read: nothing is decided by a
// clock that is not compared with it. status is called with what a start waits for.
func ReadClock(ctx context.Context, c Clock, log *slog.Logger, status func(line string)) error {
	err := storage.Retry(ctx, func() error { return c.Read(ctx) }, func(err error) bool {
		log.Error("the highest time that was recorded cannot be read, and nothing is decided before", "error", err, "retry_in", storage.Pause)
		status("waits for the store, to read the highest time that was seen")
		return true
	})
	if err != nil {
		return err
	}
	if err := c.Halted(); err != nil {
		log.Error("nothing new is granted", "reason", err)
	}
	return nil
}

// clockCondition returns whether the clock of the machine is believed.
func clockCondition(h Halter) v1.Condition {
	c := v1.Condition{Name: "clock", OK: true}
	if err := h.Halted(); err != nil {
		c.OK, c.Detail = false, err.Error()
	}
	return c
}
