package main

import (
	"context"
	"fmt"

	"portcullis/api/hostca"
)

// newHostAuthority creates the authority that issues certificates to hosts; nil without a root. A key that does not open is
// reported, and hosts do without. An operator starts over, or brings the root back.
func (s *service) newHostAuthority(ctx context.Context) (*hostca.Service, error) {
	o := s.parts.Hosts
	if o == nil {
		return nil, nil
	}
	o.Store, o.Log, o.Now = s.store, s.log, s.clock.Now
	h, err := hostca.New(*o)
	if err != nil {
		return nil, fmt.Errorf("host_certificates: %w", err)
	}
	if err := h.Prepare(ctx); err != nil {
		s.log.Error("hosts get no certificates", "error", err)
	}
	return h, nil
}
