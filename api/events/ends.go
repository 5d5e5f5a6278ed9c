package events

import "slices"

// ended is a pair of types: the one begins what the other ends. With same, both have the same causes, and only what has the same
// cause ends.
type ended struct {
	begin, end string
	same       bool
}

// pairs lists what lasts. Types in no pair report a moment.
func pairs() []ended {
	return []ended{
		{BrakeEngaged, BrakeEnded, false},
		{EvidenceOutdated, EvidenceCurrent, true},
		{AuditBroken, AuditWhole, false},
		{FabricBlind, FabricSeen, false},
		{AnchorsFailing, AnchorsWritten, true},
		{StoreShort, StoreRoom, false},
		{ClockJump, ClockSteady, false},
		{WebhookFailing, WebhookDelivers, true},
		{DriftFound, DriftEnded, true},
		{IsolationLost, IsolationRegained, false},
		{IsolationUnproven, IsolationRegained, false},
	}
}

// EndOf returns the type that ends what a type begins, and whether only what has the same cause ends. Empty: it reports a moment.
func EndOf(begin string) (end string, sameCause bool) {
	all := pairs()
	i := slices.IndexFunc(all, func(p ended) bool { return p.begin == begin })
	if i < 0 {
		return "", false
	}
	return all[i].end, all[i].same
}

// BegunBy returns the types of what a type ends; none: it ends nothing.
func BegunBy(end string) []string {
	var out []string
	for _, p := range pairs() {
		if p.end == end {
			out = append(out, p.begin)
		}
	}
	return out
}
