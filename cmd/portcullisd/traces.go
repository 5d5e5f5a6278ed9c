package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/leader"
	"portcullis/api/trace/otlp"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/tracing"
)

const (
	// tracesRole is the role in which one of several instances sends traces.
	tracesRole = "traces"
	// tracesTTL is how long admissions that end are not seen after the instance that sends traces was killed. The next one
	// sends only those that end later.
	tracesTTL = 10 * time.Second
)

// startTraces has traces sent to the collector that the configuration names: by this instance, or by the one of several that leads.
// It returns nil if none is named.
func (s *service) startTraces(ctx context.Context, group *errgroup.Group) (*otlp.Exporter, error) {
	if s.parts.Traces == nil {
		return nil, nil
	}
	o := *s.parts.Traces
	o.Instance, o.Version, o.Log = s.name, version.Short(), s.log
	out, err := otlp.New(o)
	if err != nil {
		return nil, err
	}
	group.Go(func() error { out.Run(ctx); return nil })
	f := &tracing.Follower{Store: s.store, To: out, Log: s.log, Now: s.clock.Now}
	if s.name == "" {
		group.Go(func() error { f.Run(ctx); return nil })
		return out, nil
	}
	one := leader.New(leader.Options{Store: s.store, Role: tracesRole, Instance: s.name, TTL: tracesTTL, Log: s.log})
	group.Go(func() error {
		return one.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			f.Run(ctx)
			return nil
		})
	})
	return out, nil
}
