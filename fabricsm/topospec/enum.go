package topospec

import (
	"fmt"
	"strings"
)

// Kind is the kind of a device. The zero Kind, KindAny, is "not said": the node type seen is not compared.
type Kind uint8

// Kinds of devices. An aggregation node is a CA inside a switch, seen on the
// switch's extra port.
const (
	KindAny Kind = iota
	KindSwitch
	KindHCA
	KindRouter
	KindAN
)

var kindNames = []string{"any", "switch", "hca", "router", "an"}

// LinkState is the intended state of a link.
type LinkState uint8

// Link states. Active, Disabled and NoDiscover are those of topoconfig.conf.
const (
	Active      LinkState = iota // up, and compared
	Disabled                     // switched off by the Subnet Manager
	NoDiscover                   // left as it is, nothing behind it is examined
	Reserved                     // a spare port: must be dark
	Maintenance                  // as Active, but another device of the same model may appear
)

var linkStateNames = []string{"active", "disabled", "no_discover", "reserved", "maintenance"}

// Class is the purpose of a link. The zero Class is "not said".
type Class uint8

// Classes of links.
const (
	ClassAny Class = iota
	ClassInternal
	ClassHost
	ClassTrunk
	ClassUplink
	ClassService // Subnet Managers, storage, management
)

var classNames = []string{"any", "internal", "host", "trunk", "uplink", "service"}

// Role is the role of a device in the design. The zero Role is "not said".
type Role uint8

// Roles of devices.
const (
	RoleAny Role = iota
	RoleLeaf
	RoleSpine
	RoleCore
	RoleCompute
	RoleSM
	RoleService
)

var roleNames = []string{"any", "leaf", "spine", "core", "compute", "sm", "service"}

// Stock says whether a device is in use. The zero Stock is "in use".
type Stock uint8

// Stocks. A spare may replace a device of its model; a retired GUID must never
// be seen again.
const (
	InUse Stock = iota
	Spare
	Retired
)

var stockNames = []string{"in_use", "spare", "retired"}

// Mode says what follows from a finding. The zero Mode is Observe.
type Mode uint8

// Modes, the mildest first. Only an operator promotes a fabric to the next one.
const (
	Observe Mode = iota // findings are recorded
	Warn                // and raise alarms
	Enforce             // and ports are disabled or held
)

var modeNames = []string{"observe", "warn", "enforce"}

// FieldMode says how much a field of the comparison counts. The zero FieldMode
// is the default of the field.
type FieldMode uint8

// Field modes. FieldEnforce acts as far as the fabric's Mode does.
const (
	FieldDefault FieldMode = iota
	FieldOff
	FieldWarn
	FieldEnforce
)

var fieldModeNames = []string{"default", "off", "warn", "enforce"}

// UnknownLink says what happens to a link that the specification has not. The
// zero UnknownLink disables it.
type UnknownLink uint8

// Treatment of an unplanned link.
const (
	UnknownDisable UnknownLink = iota
	UnknownHold
	UnknownWarn
)

var unknownNames = []string{"disable", "hold", "warn"}

// Touch is a kind of change that needs two persons.
type Touch uint8

// Kinds of changes.
const (
	TouchNewDevice   Touch = iota // a device that was not known before, or was retired
	TouchServiceLink              // a link that is, or was, of a Subnet Manager or of class service
	TouchPolicy                   // mode, fields, guards
)

var touchNames = []string{"new_device", "service_link", "policy"}

func nameOf[T ~uint8](v T, what string, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s %d", what, uint8(v))
}

func valueOf[T ~uint8](b []byte, what string, names []string) (T, error) {
	for i, name := range names {
		if name == string(b) {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%s %.40q: want one of %s", what, b, strings.Join(names, ", "))
}
