package main

import (
	"context"
	"errors"

	"portcullis/api/results"
)

// newResults makes what signs attestation results; nil without a root. Keys that do not
// open hold up nothing else: hosts are admitted without a result.
func (s *service) newResults(ctx context.Context) (*results.Service, error) {
	o := s.parts.Results
	if o == nil {
		return nil, nil
	}
	o.Store, o.Log, o.Now = s.store, s.log, s.clock.Now
	svc, err := results.New(*o)
	if err != nil {
		return nil, err
	}
	if err := svc.Prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		s.log.Error("no attestation result can be signed", "err", err)
	}
	return svc, nil
}
