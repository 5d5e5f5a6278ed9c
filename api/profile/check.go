package profile

import (
	"fmt"
	"time"
)

// Profile is a set of rules. The zero Profile is none.
type Profile uint8

// Profiles, each with the rules of the one before.
const (
	General Profile = iota + 1
	BareMetal
	SecuredBareMetal
)

var names = [...]string{General: "general", BareMetal: "bare-metal-cloud", SecuredBareMetal: "secured-bare-metal-cloud"}

// String returns the name that Parse takes.
func (p Profile) String() string {
	if p < General || p > SecuredBareMetal {
		return fmt.Sprintf("profile %d", uint8(p))
	}
	return names[p]
}

// Parse returns the profile of a name.
func Parse(name string) (Profile, error) {
	for p := General; p <= SecuredBareMetal; p++ {
		if names[p] == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("profile %q is not known: want %v, %v or %v", name, General, BareMetal, SecuredBareMetal)
}

// State says whether a rule holds. The zero State is Unknown.
type State uint8

// States.
const (
	Unknown State = iota
	Holds
	Fails
)

func (s State) String() string {
	switch s {
	case Holds:
		return "holds"
	case Fails:
		return "fails"
	default:
		return "unknown"
	}
}

// Finding is what a rule says of Facts.
type Finding struct {
	Rule   *Rule
	State  State
	Detail string    // why it is not Holds; empty otherwise
	Source string    // what was looked at; empty: nothing
	At     time.Time // when; zero: never
}

// Report has a finding for each rule of a profile, in the order of Rules.
type Report struct {
	Profile  Profile
	Findings []Finding
}

// Check applies the rules of a profile to facts.
func Check(p Profile, f *Facts) *Report {
	r := &Report{Profile: p}
	for i := range table {
		rule := &table[i]
		if !rule.In(p) {
			continue
		}
		r.Findings = append(r.Findings, rule.judge(rule, f))
	}
	return r
}

// Count returns how many rules have a state.
func (r *Report) Count(s State) (n int) {
	for i := range r.Findings {
		if r.Findings[i].State == s {
			n++
		}
	}
	return n
}

// Holds reports whether every rule of the profile holds. A report without rules does not.
func (r *Report) Holds() bool {
	return len(r.Findings) > 0 && r.Count(Holds) == len(r.Findings)
}

// Score returns the share of rules that hold in percent, rounded down: 100 only if every rule holds.
func (r *Report) Score() int {
	if len(r.Findings) == 0 {
		return 0
	}
	return 100 * r.Count(Holds) / len(r.Findings)
}
