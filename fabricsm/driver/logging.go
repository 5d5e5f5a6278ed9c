package driver

import (
	"context"
	"fmt"
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

// logged writes an event. On some fabrics every node forgets the same fields, which
// is told of some and then ever more rarely; whoever takes events gets all.
func (l *loop) logged(e sm.Event) {
	forgets, ok := e.(*sm.FieldsNotKept)
	if !ok {
		logEvent(l.log, e)
		return
	}
	if l.alike == nil {
		l.alike = make(map[sm.PortFields]int)
	}
	l.alike[forgets.Fields]++
	switch n := l.alike[forgets.Fields]; {
	case n <= toldAlike:
		logEvent(l.log, e)
	case powerOfTen(n):
		l.log.Warn(fmt.Sprintf("%v, as %d nodes before it; most of those were not listed", e, n-1), slog.Any(EventKey, e))
	}
}

// toldAlike is of how many nodes one by one it is told that they forget the same
// fields.
const toldAlike = 5

func powerOfTen(n int) bool {
	for n > 1 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
