package profile

import "time"

// Seen is a value together with what was looked at to know it. The zero Seen is unknown.
type Seen[T any] struct {
	Value  T
	Source string    // what was looked at, such as "fabric.keys of the configuration"
	At     time.Time // when
	// Missing is why the value is not known; then Value does not count.
	Missing string
}

// known reports whether the value counts. One that names no source or no time does not.
func (s *Seen[T]) known() bool { return s.Missing == "" && s.Source != "" && !s.At.IsZero() }

// evidence returns what was looked at, when, and why the value does not count.
func (s *Seen[T]) evidence() (source string, at time.Time, missing string) {
	switch {
	case s.known():
		return s.Source, s.At, ""
	case s.Missing != "":
		return s.Source, s.At, s.Missing
	}
	return s.Source, s.At, "nothing was looked at"
}

// Count says how many of some objects, such as ports, are as wanted.
type Count struct {
	Of, Good int
}

// DeviceKeys is how M_Keys are set.
type DeviceKeys struct {
	PerPort    bool // each port has its own
	Protection uint8
	Rotation   time.Duration // from one change to the next; 0: never changed
	Ports      Count         // those that were read to be protected so
}

// SAKey is the SA_Key.
type SAKey struct {
	Set      bool
	Rotation time.Duration // from one change to the next; 0: never changed
}

// SATrust says which requests to subnet administration are answered.
type SATrust struct {
	Enhanced   bool // without the SA_Key, only what hosts need
	SourceGIDs bool // requests with a source GID that is not the port's are dropped
}

// SALimits are how much a port may register without the SA_Key; 0: any number.
type SALimits struct {
	Groups, Services, Subscriptions int
}

// ClassKey is the key of a general management class.
type ClassKey struct {
	Enabled, Protected bool
}

// MADLimits says which rates of MADs are bounded.
type MADLimits struct {
	All, Node bool // of all ports together, and of one
}

// Attested says how the boots of hosts are judged.
type Attested struct {
	Sets  int   // of reference values in force
	Hosts Count // the admitted hosts whose evidence a set in force contains
}

// Adopted says which memberships are kept though nothing is proven of their hosts.
type Adopted struct {
	Members  int
	Deadline time.Time // the last at which one ends; zero: none was named
}

// Isolation is what the newest examination of all tenants found.
type Isolation struct {
	Verdict Verdict
	Why     string        // why tenants are not proven isolated; empty: they are
	Begun   time.Time     // of the examination
	MaxAge  time.Duration // how long it counts
}

// Verdict says whether a packet can pass between tenants. The zero Verdict is Unproven.
type Verdict uint8

// Verdicts.
const (
	Unproven Verdict = iota
	Isolated
	Leaks
)

// Anchors says where the head of the audit log is kept outside.
type Anchors struct {
	Configured int
	Confirmed  time.Time // when each anchor last had the head; zero: never
}

// Facts are what the rules are applied to. Each is unknown until it is set.
type Facts struct {
	At time.Time // when they were collected

	LimitedDefault  Seen[Count] // ports of hosts that are at most limited members of the default partition
	EnforcedIn      Seen[Count] // switch ports to hosts that check packets from the host
	EnforcedOut     Seen[Count] // switch ports to hosts that check packets to the host
	TopologyEnforce Seen[bool]
	MKeys           Seen[DeviceKeys]
	SMKey           Seen[bool] // set, and not a value that products have by default
	AllowedSMs      Seen[bool] // no Subnet Manager is believed that is not listed
	SAKey           Seen[SAKey]
	SATrust         Seen[SATrust]
	SALimits        Seen[SALimits]
	CCKey           Seen[ClassKey]
	VSKey           Seen[ClassKey]
	N2NKey          Seen[ClassKey]
	MADLimits       Seen[MADLimits]
	SignedFirmware  Seen[Count] // adapters of admitted hosts that take signed firmware only
	SMPFirewall     Seen[Count] // adapters of admitted hosts with the SMP firewall on and locked
	Attested        Seen[Attested]
	Adopted         Seen[Adopted]
	Isolation       Seen[Isolation]
	Anchors         Seen[Anchors]
	Rehearsed       Seen[time.Time] // when an escrow kit was last rehearsed with success; zero: never
}
