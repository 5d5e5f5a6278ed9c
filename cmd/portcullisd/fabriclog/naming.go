// Package fabriclog logs for operators what views and events of the fabric mean: which host and tenant an event accuses, and
// what they have to know of the routes.
package fabriclog

import (
	"context"
	"log/slog"

	"portcullis/api/fabric/query"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/sm"
)

// namingHandler adds to records of an event the host and the tenant that it accuses.
type namingHandler struct {
	slog.Handler
	owner func(sm.Event) (host, tenant string)
}

// Naming is a log that names hosts and tenants.
func Naming(log *slog.Logger, o *query.Observer) *slog.Logger {
	return slog.New(&namingHandler{log.Handler(), o.Owner})
}

// Handle implements slog.Handler.
func (h *namingHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		e, ok := a.Value.Any().(sm.Event)
		if !ok || a.Key != driver.EventKey {
			return true
		}
		host, tenant := h.owner(e)
		r = r.Clone()
		if host != "" {
			r.AddAttrs(slog.String("host", host))
		}
		if tenant != "" {
			r.AddAttrs(slog.String("tenant", tenant))
		}
		return false
	})
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *namingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &namingHandler{h.Handler.WithAttrs(attrs), h.owner}
}

// WithGroup implements slog.Handler.
func (h *namingHandler) WithGroup(name string) slog.Handler {
	return &namingHandler{h.Handler.WithGroup(name), h.owner}
}
