package anchor

import (
	"context"
	"log/slog"
	"strings"

	"portcullis/api/audit/chain"
)

// Journal is a Sink that writes anchors into the log of the service, with a field for each part of them. A reader of the
// log, also of a copy sent elsewhere, has the head of the audit log without any setting.
type Journal struct{ Log *slog.Logger }

// Kind implements Sink.
func (Journal) Kind() string { return "journal" }

// Name implements Sink.
func (Journal) Name() string { return "journal" }

// Write implements Sink. A logger returns no error, so that a loss behind it is not noticed here.
func (j Journal) Write(ctx context.Context, a *chain.Anchor) error {
	var attrs []slog.Attr
	for _, f := range a.Fields() {
		attrs = append(attrs, slog.String(f[0], f[1]))
	}
	j.Log.LogAttrs(ctx, slog.LevelInfo, strings.TrimSpace(chain.Marker), attrs...)
	return nil
}
