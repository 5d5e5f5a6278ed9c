package leader

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is the time since the machine was started. It goes on while the machine is
// suspended, and is not changed when the time of day is set.
type Instant time.Duration

// Clock returns the present Instant.
type Clock func() Instant

// Boottime is the Clock of the machine, CLOCK_BOOTTIME. CLOCK_MONOTONIC, by which
// time.Time measures, stands still while the machine is suspended.
func Boottime() Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return math.MaxInt64 // later than the end of every lease
	}
	return Instant(t.Nano())
}
