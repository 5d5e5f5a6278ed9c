package leader

import (
	"context"
	"errors"
	"fmt"
)

// ErrSteppedDown says that an operator asked the leader to end its term.
var ErrSteppedDown = errors.New("an operator asked this instance to step down")

// StepDown ends the term of this instance, for another to lead. It returns an error when
// this instance does not lead.
func (c *Candidate) StepDown() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.step == nil && c.state.Leader != "":
		return fmt.Errorf("this instance does not lead: ask %s", c.state.Leader)
	case c.step == nil:
		return errors.New("this instance does not lead")
	}
	close(c.step)
	c.step = nil
	return nil
}

// standBack waits for the time of a lease, so that another instance can take it first.
func (c *Candidate) standBack(ctx context.Context) { c.pause(ctx, c.o.TTL) }
