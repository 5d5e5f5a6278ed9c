package v1

import "time"

// States of a rule of a security profile.
const (
	RuleHolds   = "holds"
	RuleFails   = "fails"
	RuleUnknown = "unknown" // there is no evidence
)

// ProfileQuery names a security profile.
type ProfileQuery struct {
	Name string `query:"name" enum:"general,bare-metal-cloud,secured-bare-metal-cloud" default:"secured-bare-metal-cloud" doc:"the profile; each has the rules of the one before"`
}

// SecurityProfile says which rules of a security profile the installation keeps.
type SecurityProfile struct {
	Name      string           `json:"name"`
	Holds     bool             `json:"holds" doc:"every rule holds"`
	Score     int              `json:"score" doc:"share of rules that hold in percent, rounded down"`
	Count     ProfileCount     `json:"count"`
	Collected time.Time        `json:"collected" doc:"when the facts were collected"`
	Rules     []ProfileFinding `json:"rules"`
}

// ProfileCount counts rules by state.
type ProfileCount struct {
	Holds   int `json:"holds"`
	Fails   int `json:"fails"`
	Unknown int `json:"unknown"`
}

// ProfileFinding is a rule, and what is known of it here.
type ProfileFinding struct {
	Rule   string     `json:"rule" doc:"a name that does not change"`
	First  string     `json:"first_profile" doc:"first profile that has the rule"`
	State  string     `json:"state" enum:"holds,fails,unknown" doc:"unknown: there is no evidence"`
	Detail string     `json:"detail,omitempty" doc:"why it does not hold"`
	Source string     `json:"source,omitempty" doc:"what was looked at; absent: nothing"`
	At     *time.Time `json:"at,omitempty" doc:"when that was so; absent: never"`
	Why    string     `json:"why"`
	Cure   string     `json:"cure" doc:"a command, or a line of the configuration"`
}
