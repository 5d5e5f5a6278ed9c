package fabric

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// shutPlaces picks the places behind which nothing is seen because the subnet manager acts on their health.
func shutPlaces(all []sm.HealthState) map[ib.Place]sm.HealthState {
	out := map[ib.Place]sm.HealthState{}
	for _, s := range all {
		if s.Unhealthy && (s.Action == sm.NoDiscover || s.Action == sm.Isolate || s.Action == sm.Disable) {
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
	did := map[sm.Action]string{
		sm.NoDiscover: "is left out of the fabric", sm.Isolate: "is kept from carrying data", sm.Disable: "is switched off",
	}[s.Action]
	if s.Condition == sm.Marked {
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
