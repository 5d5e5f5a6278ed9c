package main

import (
	"context"
	"time"

	"portcullis/api/clock/keeper"
	v1 "portcullis/api/v1"
)

// wall is the clock of the machine. Tests set it.
var wall = time.Now

// clockRetry is the pause before the recorded time is read again.
const clockRetry = time.Second

// newClock makes what keeps the time. It returns before ctx ends only when the recorded time was read: nothing is
// decided by a clock that is not compared with it.
func (s *service) newClock(ctx context.Context) error {
	o := keeper.Options{Store: s.store, Log: s.log, Wall: wall}
	if s.config.Shared() {
		var err error
		if o.Instance, err = s.config.InstanceName(); err != nil {
			return err
		}
	}
	s.clock = keeper.New(o)
	for {
		err := s.clock.Read(ctx)
		if err == nil {
			if err := s.clock.Halted(); err != nil {
				s.log.Error("nothing new is granted", "reason", err)
			}
			return nil
		}
		s.log.Error("the highest time that was recorded cannot be read, and nothing is decided before", "error", err, "retry_in", clockRetry)
		notify(s.log, "STATUS=waits for the store, to read the highest time that was seen")
		select {
		case <-time.After(clockRetry):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flushClock records the time at the end of the service.
func (s *service) flushClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	s.clock.Flush(ctx)
}

// clockCondition says whether the clock of the machine is believed.
func (s *service) clockCondition() v1.Condition {
	c := v1.Condition{Name: "clock", OK: true}
	if err := s.clock.Halted(); err != nil {
		c.OK, c.Detail = false, err.Error()
	}
	return c
}
