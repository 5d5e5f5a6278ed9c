package driver

import (
	"log/slog"

	"portcullis/fabricsm/sm"
)

// logEvent writes an event with the weight it has for an operator.
func logEvent(log *slog.Logger, e sm.Event) {
	switch e.(type) {
	case *sm.DuplicateGUID, *sm.RouteRefused, *sm.CannotEnforce, *sm.SMInfoRefused, *sm.MembershipRefused,
		*sm.NodeUnreachable, *sm.BadAnswer, *sm.ForeignSM, *sm.FieldsNotKept, *sm.StrayAnswer, *sm.SlowLink, *sm.LIDRefused, *sm.AliasRefused:
		log.Warn(e.String())
	case *sm.TrapReceived:
		log.Debug(e.String())
	default:
		log.Info(e.String())
	}
}
