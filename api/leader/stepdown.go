package leader

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrSteppedDown says that an operator asked the leader to end its term.
var ErrSteppedDown = errors.New("an operator asked this instance to step down")

// StepDown ends the term of this instance, for another to lead. It returns an error when
// this instance does not lead, or no other could. For as long as a lease lasts, and rest,
// this instance does not lead again.
func (c *Candidate) StepDown(ctx context.Context, rest time.Duration) error {
	others, err := c.Others(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case c.step == nil && c.state.Leader != "":
		return fmt.Errorf("this instance does not lead: ask %s", c.state.Leader)
	case c.step == nil:
		return errors.New("this instance does not lead")
	}
	if len(others) == 0 {
		return errors.New("no other instance runs that could lead")
	}
	close(c.step)
	c.step, c.rest = nil, rest
	return nil
}

// standBack waits for the time of a lease, plus the time that StepDown adds, so that another instance can take it first.
func (c *Candidate) standBack(ctx context.Context) {
	c.mu.Lock()
	rest := c.rest
	c.mu.Unlock()
	c.pause(ctx, c.o.TTL+rest)
}
