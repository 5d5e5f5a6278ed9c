package driver

import (
	"context"
	"log/slog"

	"portcullis/fabricsm/sm"
)

// EventKey is the attribute under which a log record has the event it tells of,
// for handlers that know more to do with it than its text.
const EventKey = "event"

// Level gives the weight that an event has for an operator.
func Level(e sm.Event) slog.Level {
	switch e.(type) {
	case *sm.DuplicateGUID, *sm.RouteRefused, *sm.CannotEnforce, *sm.SMInfoRefused, *sm.MembershipRefused,
		*sm.NodeUnreachable, *sm.BadAnswer, *sm.ForeignSM, *sm.FieldsNotKept, *sm.StrayAnswer, *sm.SlowLink, *sm.LIDRefused, *sm.AliasRefused:
		return slog.LevelWarn
	case *sm.TrapReceived:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// logEvent writes an event with its weight. Its text is made only if somebody
// reads it.
func logEvent(log *slog.Logger, e sm.Event) {
	if level := Level(e); log.Enabled(context.Background(), level) {
		log.LogAttrs(context.Background(), level, e.String(), slog.Any(EventKey, e))
	}
}
