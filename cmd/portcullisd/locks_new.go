package main

import (
	"portcullis/api/locks"
)

// newLocks makes what decides on the locks of adapters; nil without a root.
func (s *service) newLocks() (*locks.Service, error) {
	o := s.parts.Locks
	if o == nil {
		return nil, nil
	}
	o.Store, o.Now = s.store, s.clock.Now
	return locks.New(*o)
}
