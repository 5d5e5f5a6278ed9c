package driver

import (
	"context"
	"fmt"
	"log/slog"

	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/linkspeed"
	"portcullis/fabricsm/sm/violation"
)

// EventKey is the attribute under which a log record has the event it reports, for handlers that use more than its text.
const EventKey = "event"

// Level returns the log level of an event, by its importance for an operator.
func Level(e sm.Event) slog.Level {
	switch e := e.(type) {
	case *violation.Violation:
		if e.Quiet {
			return slog.LevelDebug
		}
		return slog.LevelWarn
	case *sa.Violation:
		if e.Quiet {
			return slog.LevelDebug
		}
		return slog.LevelWarn
	case *sa.GroupEvent:
		if e.Kind == group.Refused || e.Kind == group.Problem {
			return slog.LevelWarn
		}
		return slog.LevelDebug // of thousands when a job starts
	case *sa.SubscriptionEvent:
		if e.Kind == inform.Refused || e.Kind == inform.Failed || e.Kind == inform.Distrusted || e.Kind == inform.Problem {
			return slog.LevelWarn
		}
		return slog.LevelDebug
	case *sa.AliasEvent:
		if e.Reason != alias.NoReason {
			return slog.LevelWarn
		}
		return slog.LevelInfo
	case *sa.KeyProblem:
		return slog.LevelWarn
	case *sa.ServiceEvent:
		if e.Kind == service.Refused || e.Kind == service.Problem {
			return slog.LevelWarn
		}
		return slog.LevelInfo
	case *sm.DuplicateGUID, *sm.RouteRefused, *sm.CannotEnforce, *keyevent.KeyProblem, *keyevent.KeyExposed, *keyevent.KeyLent, *sm.ClassKeyProblem, *sm.ClassKeyViolation, *sm.ClassKeyFalseTrap, *sm.SMInfoRefused, *sm.MembershipRefused, *sm.ForeignPKeys, *sm.InheritedPKeys,
		*sm.NodeUnreachable, *sm.BadAnswer, *sm.ForeignSM, *sm.FieldsNotKept, *sm.StrayAnswer, *violation.KeyGuessing, *keyevent.ProtectionLapsed, *linkspeed.SlowLink, *sm.MKeyRefused, *sm.LIDRefused, *sm.AliasRefused, *sm.CountersReset, *sm.SwitchesMute:
		return slog.LevelWarn
	case *violation.TrapReceived:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// logEvent writes an event at its level. Its text is made only if the level is enabled.
func logEvent(log *slog.Logger, e sm.Event) {
	if level := Level(e); log.Enabled(context.Background(), level) {
		log.LogAttrs(context.Background(), level, e.String(), slog.Any(EventKey, e))
	}
}

// logged writes an event. Reports that are the same for a whole fabric are not written once a node; listeners for events
// get all.
func (l *loop) logged(e sm.Event) {
	switch e := e.(type) {
	case *sm.FieldsNotKept:
		l.loggedAlike(e, alike{fields: e.Fields})
	case *sm.CannotEnforce:
		l.loggedAlike(e, alike{reason: e.Reason})
	case *keyevent.KeyProblem:
		l.loggedAlike(e, alike{reason: e.Reason})
	case *sm.PortPlaced:
		l.loggedPlaced(e)
	case *sm.ClassKeyViolation:
		if !e.Quiet() {
			logEvent(l.log, e)
		}
	case *sm.Settled:
		if l.placed > 0 {
			l.log.Info(fmt.Sprintf("%d end ports were found; those that come later are logged one by one", l.placed))
		}
		l.placed, l.found = 0, true
		logEvent(l.log, e)
	default:
		logEvent(l.log, e)
	}
}

// loggedPlaced writes that a port is seen. Those that are found until the fabric
// is settled for the first time are only counted.
func (l *loop) loggedPlaced(e *sm.PortPlaced) {
	if l.found {
		logEvent(l.log, e)
		return
	}
	l.placed++
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(e.String(), slog.Any(EventKey, e))
	}
}

// loggedAlike writes a problem of a node. On some fabrics every node has the same problem, which is written for the first
// few nodes and then ever more rarely.
func (l *loop) loggedAlike(e sm.Event, k alike) {
	if l.alike == nil {
		l.alike = make(map[alike]int)
	}
	if _, known := l.alike[k]; !known && len(l.alike) == maxAlike {
		k = alike{}
	}
	l.alike[k]++
	switch n := l.alike[k]; {
	case n <= toldAlike:
		logEvent(l.log, e)
	case powerOfTen(n):
		l.log.Log(context.Background(), Level(e), fmt.Sprintf("%v, as %d nodes before it; most of those were not listed", e, n-1), slog.Any(EventKey, e))
	}
}

// alike is what may be the matter with many nodes.
type alike struct {
	fields sm.PortFields // they do not keep these
	reason string        // or this, in words
}

const (
	// toldAlike is the number of nodes for which the same problem is written one by one.
	toldAlike = 5
	// maxAlike bounds how many different things are counted.
	maxAlike = 1000
)

func powerOfTen(n int) bool {
	for n > 1 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
