package lonesm

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/devicekeys"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/driver/factfile"
)

// flushEvery is how often what could not be saved is tried again, and the list
// of LIDs for OpenSM brought up to date.
const flushEvery = 10 * time.Second

// openState opens the directory of --state-dir, if there is one.
func (s *manager) openState() (err error) {
	if s.o.StateDir != "" {
		s.state, err = factfile.Open(s.o.StateDir, s.log)
	}
	return err
}

// keepState sets where the driver keeps what has to survive.
func (s *manager) keepState(o *driver.Options) {
	if s.state != nil {
		o.Store = s.kept
	}
}

// openKeys opens the keys in the state directory.
func (s *manager) openKeys() (err error) {
	c := &s.o.Config.Fabric.Keys
	if s.state == nil && c.ManagesKeys() {
		return command.Hint(errors.New("devices are to get keys, and there is no place to keep them: a restart would find every device locked"),
			"name a state directory with --state-dir")
	}
	if s.state == nil {
		return nil
	}
	s.kept, s.ring, err = devicekeys.Open(c, s.state, s.o.Config.Path, &s.core)
	return err
}

// closeState writes what is still to be written.
func (s *manager) closeState() {
	if s.state == nil {
		return
	}
	if err := s.state.Close(); err != nil {
		s.log.Warn("closing the state directory", "error", err)
	}
}

// flushState writes, in a group, records that could not be written before.
func (s *manager) flushState(ctx context.Context, group *errgroup.Group) {
	if s.state == nil {
		return
	}
	group.Go(func() error {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				s.state.Flush()
			}
		}
	})
}
