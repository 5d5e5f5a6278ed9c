package v1

import "time"

// Brakes are what stops that many hosts lose memberships by automatic causes.
type Brakes struct {
	Limits BrakeLimits `json:"limits"`
	Items  []Brake     `json:"items" doc:"by class of causes: evidence, place, adoption, drift"`
}

// BrakeLimits say how many hosts may lose memberships by automatic causes.
type BrakeLimits struct {
	Hosts  int     `json:"hosts" doc:"at most this many"`
	Share  float64 `json:"share" doc:"and at most this share of the hosts that have memberships, but one in any case"`
	Within string  `json:"within" doc:"in this time"`
}

// Brake is the brake of one class of causes.
type Brake struct {
	Class    string     `json:"class" enum:"evidence,place,adoption,drift"`
	Engaged  bool       `json:"engaged" doc:"it keeps memberships that automatic causes would take"`
	Since    time.Time  `json:"since,omitzero"`
	Recent   int        `json:"recent" doc:"hosts that lost memberships by such causes a short time ago"`
	Held     int        `json:"held" doc:"hosts whose memberships it keeps"`
	Hosts    []HeldHost `json:"hosts" doc:"these, at most 1000"`
	Released time.Time  `json:"released,omitzero" doc:"when an operator had it go on last"`
	By       string     `json:"by,omitempty" doc:"who did"`
	Reason   string     `json:"reason,omitempty" doc:"and why"`
}

// HeldHost is a host that keeps memberships that a cause would take.
type HeldHost struct {
	Host  string    `json:"host"`
	Cause string    `json:"cause"`
	Since time.Time `json:"since"`
}

// BrakeRelease has what a brake stopped go on.
type BrakeRelease struct {
	Class  string `json:"class" enum:"evidence,place,adoption,drift"`
	Reason string `json:"reason" minLength:"1" maxLength:"200" doc:"why, for the audit log"`
}
