package result

import "fmt"

// Tier is a trustworthiness tier (AR4SI section 2.3.2): the conclusion that a relying party may draw from an appraisal. The
// zero Tier is None.
type Tier uint8

// Tiers, by how little may be relied upon: Worst goes by this order.
const (
	None            Tier = iota // nothing is asserted
	Affirming                   // all that was asserted speaks for it
	Warning                     // something was not demanded, or has to be looked at
	Contraindicated             // something speaks against it
)

var tierNames = [...]string{"none", "affirming", "warning", "contraindicated"}

// String returns the word that EAR has for t.
func (t Tier) String() string {
	if int(t) >= len(tierNames) {
		return fmt.Sprintf("tier %d", uint8(t))
	}
	return tierNames[t]
}

// MarshalText implements encoding.TextMarshaler.
func (t Tier) MarshalText() ([]byte, error) {
	if int(t) >= len(tierNames) {
		return nil, fmt.Errorf("trustworthiness tier %d is not one of EAR's", uint8(t))
	}
	return []byte(t.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Tier) UnmarshalText(b []byte) error {
	for i, name := range tierNames {
		if string(b) == name {
			*t = Tier(i)
			return nil
		}
	}
	return fmt.Errorf("trustworthiness tier %q: want none, affirming, warning or contraindicated", clip(string(b)))
}

// Worst returns the lowest tier for an object that has all of the tiers. None counts below Warning: if nothing is known
// beside a warning, nothing is affirmed.
func Worst(tiers ...Tier) Tier {
	worst := Affirming
	for _, t := range tiers {
		if t.badness() > worst.badness() {
			worst = t
		}
	}
	return worst
}

func (t Tier) badness() int {
	switch t {
	case Affirming:
		return 0
	case Warning:
		return 1
	case Contraindicated:
		return 3
	default:
		return 2
	}
}

// Claim is a trustworthiness claim of AR4SI: a number whose range says its tier. 0 is
// no claim, and left out.
type Claim int8

// Tier returns the tier of the range that c is in.
func (c Claim) Tier() Tier {
	switch {
	case c >= 96 || c <= -97:
		return Contraindicated
	case c >= 32 || c <= -33:
		return Warning
	case c >= 2 || c <= -2:
		return Affirming
	default:
		return None
	}
}

// The claims that are made here, with the sentences of AR4SI section 2.3.4 in short.
const (
	Recognized        Claim = 2  // instance-identity: recognized, not known to be compromised
	Distrusted        Claim = 96 // instance-identity, hardware: recognized, and not to be trusted
	BootApproved      Claim = 3  // executables: only approved ones were loaded during the boot
	NotRecognized     Claim = 33 // executables: some were loaded that are not recognized
	Genuine           Claim = 2  // hardware: passed what shows that it is genuine
	ConfigApproved    Claim = 2  // configuration: known and approved
	ConfigVulnerable  Claim = 32 // configuration: exposes what is known to be a weakness
	ConfigUnavailable Claim = 36 // configuration: relevant parts could not be seen
)

// Vector is the appraisal of one attester. A zero claim is not asserted. AR4SI has four more claims, about which a TPM and
// an adapter report nothing.
type Vector struct {
	Identity      Claim `json:"instance-identity,omitzero"`
	Configuration Claim `json:"configuration,omitzero"`
	Executables   Claim `json:"executables,omitzero"`
	Hardware      Claim `json:"hardware,omitzero"`
}

// Tier returns the worst tier of the claims that are made, or None if there is none.
func (v Vector) Tier() Tier {
	out, made := Affirming, false
	for _, c := range []Claim{v.Identity, v.Configuration, v.Executables, v.Hardware} {
		if t := c.Tier(); t != None {
			out, made = Worst(out, t), true
		}
	}
	if !made {
		return None
	}
	return out
}
