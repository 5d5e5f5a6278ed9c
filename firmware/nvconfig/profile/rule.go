package profile

import (
	"fmt"
	"slices"

	"portcullis/firmware/nvconfig"
)

// Need says what it means that a setting is not as wanted.
type Need uint8

// Needs.
const (
	// Record: any value will do, and is noted.
	Record Need = iota + 1
	// WhereKnown: an adapter that knows the setting must have the value. That one
	// does not know it is noted.
	WhereKnown
	// Required: an adapter that does not know the setting does not comply either.
	Required
)

var needNames = []string{Record: "record", WhereKnown: "where known", Required: "required"}

func (n Need) String() string {
	if n >= Record && n <= Required {
		return needNames[n]
	}
	return fmt.Sprintf("need %d", uint8(n))
}

// MarshalText implements encoding.TextMarshaler.
func (n Need) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Need) UnmarshalText(b []byte) error {
	i := slices.Index(needNames, string(b))
	if i <= 0 {
		return fmt.Errorf("need %q: want record, where known or required", b)
	}
	*n = Need(i)
	return nil
}

// DevicePSID as a wanted value stands for the PSID of the adapter.
const DevicePSID = "device"

// Rule is what is wanted of one parameter.
type Rule struct {
	Parameter string `json:"parameter"`
	// Want is the value as nvconfig.Field writes it; empty where any will do.
	Want   string `json:"want,omitempty"`
	Need   Need   `json:"need"`
	Reason string `json:"reason"`
	// Site says that the site's file says so; Ours is then what Default wants.
	Site bool   `json:"site,omitempty"`
	Ours string `json:"ours,omitempty"`
	// AbsentIsFine: an adapter that holds no such item is as wanted.
	AbsentIsFine bool `json:"absent_is_fine,omitempty"`
}

// parameter finds where the setting is. Rules of other parameters are not made.
func (r Rule) parameter() nvconfig.Parameter {
	p, ok := nvconfig.LookUp(r.Parameter)
	if !ok {
		panic("profile: no parameter is called " + r.Parameter)
	}
	return p
}

// want returns the value for one adapter.
func (r Rule) want(c Card) string {
	if r.Want == DevicePSID && r.parameter().Field.Kind == nvconfig.Text {
		return c.PSID
	}
	return r.Want
}

// Profile is a hardening list. Its rules have a fixed order, one for each parameter.
type Profile struct {
	Name    string `json:"name"`
	Version uint32 `json:"version"`
	Rules   []Rule `json:"rules"`
}

// Rule finds the rule of a parameter.
func (p *Profile) Rule(parameter string) (Rule, bool) {
	i := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.Parameter == parameter })
	if i < 0 {
		return Rule{}, false
	}
	return p.Rules[i], true
}
