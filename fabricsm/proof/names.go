package proof

import "fmt"

var assumptionNames = [...]string{"switches and adapters", "switches alone", "adapters alone"}

// String names the devices that are counted on.
func (a Assumption) String() string {
	if int(a) >= len(assumptionNames) {
		return "unknown assumption"
	}
	return assumptionNames[a]
}

var kindNames = [...]string{"undeclared", "spare", "tenant", "shared", "infrastructure"}

// String returns the kind, and the name if there is one.
func (o Owner) String() string {
	kind := fmt.Sprintf("kind %d", uint8(o.Kind))
	if int(o.Kind) < len(kindNames) {
		kind = kindNames[o.Kind]
	}
	if o.Name == "" {
		return kind
	}
	return kind + " " + o.Name
}

var statusNames = [...]string{"unproven", "leaks", "isolated"}

// String names the status.
func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return fmt.Sprintf("status %d", uint8(s))
	}
	return statusNames[s]
}

var depthNames = [...]string{"nothing", "switch and adapter together", "the adapter alone", "the switch alone", "switch and adapter, each alone"}

// String names what holds.
func (d Depth) String() string {
	if int(d) >= len(depthNames) {
		return fmt.Sprintf("depth %d", uint8(d))
	}
	return depthNames[d]
}
