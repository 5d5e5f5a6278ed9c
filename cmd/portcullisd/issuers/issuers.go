// Package issuers creates what signs for the service with keys that the store has sealed: certificates of hosts, attestation
// results, and receipts. A key that does not open holds up nothing else.
package issuers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"portcullis/api/hostca"
	"portcullis/api/receipts"
	"portcullis/api/results"
	"portcullis/api/store"
)

// Site is what issuers need of the service.
type Site struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
}

// Hosts creates the authority that issues certificates to hosts; nil without options, which are there if there is a root. A key
// that does not open is reported, and hosts do without. An operator starts over, or brings the root back.
func (s *Site) Hosts(ctx context.Context, o *hostca.Options) (*hostca.Service, error) {
	if o == nil {
		return nil, nil
	}
	o.Store, o.Log, o.Now = s.Store, s.Log, s.Now
	h, err := hostca.New(*o)
	if err != nil {
		return nil, fmt.Errorf("host_certificates: %w", err)
	}
	if err := h.Prepare(ctx); err != nil {
		s.Log.Error("hosts get no certificates", "error", err)
	}
	return h, nil
}

// Results creates what signs attestation results; nil without options. Keys that do not
// open hold up nothing else: hosts are admitted without a result.
func (s *Site) Results(ctx context.Context, o *results.Options) (*results.Service, error) {
	if o == nil {
		return nil, nil
	}
	o.Store, o.Log, o.Now = s.Store, s.Log, s.Now
	svc, err := results.New(*o)
	if err != nil {
		return nil, err
	}
	if err := svc.Prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		s.Log.Error("no attestation result can be signed", "err", err)
	}
	return svc, nil
}

// Receipts creates what issues receipts; nil without options of attestation results, whose root and period their keys have, too. Keys
// that do not open hold up nothing else. An examiner that is nil has no port in the fabric.
func (s *Site) Receipts(ctx context.Context, o *results.Options, hosts receipts.Appraiser, examiner receipts.Examiner) (*receipts.Service, error) {
	if o == nil {
		return nil, nil
	}
	svc, err := receipts.New(receipts.Options{Store: s.Store, Root: o.Root, Period: o.Period, Log: s.Log, Now: s.Now, Hosts: hosts, Examiner: examiner})
	if err != nil {
		return nil, err
	}
	if err := svc.Prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		s.Log.Error("no receipt can be signed", "err", err)
	}
	return svc, nil
}
