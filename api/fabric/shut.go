package fabric

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
)

// shutPlaces picks the places behind which nothing is seen because the subnet manager acts on their health.
func shutPlaces(all []health.State) map[ib.Place]health.State {
	out := map[ib.Place]health.State{}
	for _, s := range all {
		if s.Unhealthy && (s.Action == health.NoDiscover || s.Action == health.Isolate || s.Action == health.Disable) {
			out[s.Place] = s
		}
	}
	return out
}

// shut says that the subnet manager shut the switch port, or its switch, why, and what to do; "" if it did not.
func (o *observed) shut(at ib.Place) string {
	what := fmt.Sprintf("switch port %v", at)
	s, is := o.closed[at]
	if !is {
		if s, is = o.closed[ib.Place{Switch: at.Switch}]; !is || at.IsZero() {
			return ""
		}
		what = fmt.Sprintf("switch %v", at.Switch)
	}
	place := s.Place.String()
	did := map[health.Action]string{
		health.NoDiscover: "is left out of the fabric", health.Isolate: "is kept from carrying data", health.Disable: "is switched off",
	}[s.Action]
	if s.Condition == health.Marked {
		why := ""
		if s.Reason != "" {
			why = fmt.Sprintf(" (%s)", s.Reason)
		}
		return fmt.Sprintf("%s %s since %s, because an operator marked it unhealthy%s: once that is mended, portcullis fabric health release %s",
			what, did, s.Since.UTC().Format(time.RFC3339), why, place)
	}
	return fmt.Sprintf("%s %s since %s, because it misbehaves (%v: %s): see portcullis fabric health; when it is mended, portcullis fabric health release %s",
		what, did, s.Since.UTC().Format(time.RFC3339), s.Condition, s.Reason, place)
}
