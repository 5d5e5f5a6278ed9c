package attest

import (
	"fmt"
	"slices"
)

// The words of a statement. The zero value of each is "unknown".
type (
	// Answer is yes, no or unknown.
	Answer uint8
	// LifeCycle is the life cycle of a device's security.
	LifeCycle uint8
	// Assurance is how much is known about the firmware that runs: each level
	// includes the one below, but G3, which includes G0.
	Assurance uint8
	// LockMethod is how settings were protected.
	LockMethod uint8
	// MLOCK is the state of secure host.
	MLOCK uint8
	// Priority is the life-cycle priority of a setting.
	Priority uint8
	// Firewall is what became of an SMP that the host sent.
	Firewall uint8
)

// Answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// Life cycles.
const (
	LifeUnknown LifeCycle = iota
	LifeProduction
	LifeGASecured
	LifeGANonSecured
	LifeRMA
	LifePreProduction
)

// Assurance levels.
const (
	AssuranceNone Assurance = iota // not even G0
	G0                             // the device says: signed firmware only, secured, secure boot, no debug
	G1                             // and an image verified under a pinned key is what it says it runs
	G2                             // and its flash, read back, has that image's digest
	G3                             // G0, and a measurement over SPDM equals the reference
)

// Lock methods.
const (
	LockUnknown    LockMethod = iota
	LockNone                  // nothing was done
	LockSignedFile            // settings of a signed file, which no host may overwrite
	LockWrites                // settings written plainly, kept by MLOCK alone
)

// States of MLOCK.
const (
	MLOCKUnknown MLOCK = iota
	MLOCKUnlocked
	MLOCKLocked
	MLOCKFirmwareUpdate // locked out of band
	MLOCKHostConfig     // locked out of band
)

// Priorities.
const (
	PriorityUnknown Priority = iota
	PriorityUser
	PriorityOEM
	PriorityMLNX
)

// Outcomes of the probe.
const (
	FirewallUnknown Firewall = iota
	FirewallBlocks           // the SMP did not leave
	FirewallOpen             // it was answered
)

var (
	answers     = words{"unknown", "yes", "no"}
	lifeCycles  = words{"unknown", "production", "ga-secured", "ga-non-secured", "rma", "pre-production"}
	assurances  = words{"none", "G0", "G1", "G2", "G3"}
	lockMethods = words{"unknown", "none", "signed-file", "writes"}
	mlocks      = words{"unknown", "unlocked", "locked", "locked-firmware-update", "locked-host-config"}
	priorities  = words{"unknown", "USER", "OEM", "MLNX"}
	firewalls   = words{"unknown", "blocks", "open"}
)

// words are the texts of a type's values, by value.
type words []string

func (w words) text(v uint8) string {
	if int(v) < len(w) {
		return w[v]
	}
	return fmt.Sprintf("%d", v)
}

func (w words) marshal(v uint8) ([]byte, error) {
	if int(v) >= len(w) {
		return nil, fmt.Errorf("value %d is not one of %v", v, []string(w))
	}
	return []byte(w[v]), nil
}

func (w words) parse(b []byte) (uint8, error) {
	i := slices.Index(w, string(b))
	if i < 0 {
		return 0, fmt.Errorf("%q is not one of %v", clip(string(b)), []string(w))
	}
	return uint8(i), nil
}

// String and the two methods of encoding.TextMarshaler and
// encoding.TextUnmarshaler, for each of the types.

func (v Answer) String() string     { return answers.text(uint8(v)) }
func (v LifeCycle) String() string  { return lifeCycles.text(uint8(v)) }
func (v Assurance) String() string  { return assurances.text(uint8(v)) }
func (v LockMethod) String() string { return lockMethods.text(uint8(v)) }
func (v MLOCK) String() string      { return mlocks.text(uint8(v)) }
func (v Priority) String() string   { return priorities.text(uint8(v)) }
func (v Firewall) String() string   { return firewalls.text(uint8(v)) }

func (v Answer) MarshalText() ([]byte, error)     { return answers.marshal(uint8(v)) }
func (v LifeCycle) MarshalText() ([]byte, error)  { return lifeCycles.marshal(uint8(v)) }
func (v Assurance) MarshalText() ([]byte, error)  { return assurances.marshal(uint8(v)) }
func (v LockMethod) MarshalText() ([]byte, error) { return lockMethods.marshal(uint8(v)) }
func (v MLOCK) MarshalText() ([]byte, error)      { return mlocks.marshal(uint8(v)) }
func (v Priority) MarshalText() ([]byte, error)   { return priorities.marshal(uint8(v)) }
func (v Firewall) MarshalText() ([]byte, error)   { return firewalls.marshal(uint8(v)) }

func (v *Answer) UnmarshalText(b []byte) error     { return read(v, answers, b) }
func (v *LifeCycle) UnmarshalText(b []byte) error  { return read(v, lifeCycles, b) }
func (v *Assurance) UnmarshalText(b []byte) error  { return read(v, assurances, b) }
func (v *LockMethod) UnmarshalText(b []byte) error { return read(v, lockMethods, b) }
func (v *MLOCK) UnmarshalText(b []byte) error      { return read(v, mlocks, b) }
func (v *Priority) UnmarshalText(b []byte) error   { return read(v, priorities, b) }
func (v *Firewall) UnmarshalText(b []byte) error   { return read(v, firewalls, b) }

func read[T ~uint8](dst *T, w words, b []byte) error {
	n, err := w.parse(b)
	*dst = T(n)
	return err
}
