package v1

import "time"

// Clock is how the clock of the machine stands to the highest time that the service has seen.
type Clock struct {
	State     string    `json:"state" enum:"steady,behind,waiting,ahead" doc:"steady: the machine's clock is believed. Else nothing new is granted. behind: it is behind the highest time seen; waiting: it is far ahead of that, and other instances may contradict; ahead: one does"`
	Since     time.Time `json:"since" doc:"of state, by time"`
	Time      time.Time `json:"time" doc:"that decisions rest on; it never goes back"`
	Machine   time.Time `json:"machine" doc:"what the machine shows"`
	Off       string    `json:"off" doc:"how far the machine's clock is from time; with a minus it is behind"`
	Highest   time.Time `json:"highest" doc:"as recorded for all instances, each minute and with each grant"`
	By        string    `json:"by,omitempty" doc:"instance that recorded it; absent: the only one"`
	SetTimes  int64     `json:"set_times" doc:"how often an operator set it"`
	Instance  string    `json:"instance,omitempty" doc:"that answers; absent: the only one"`
	Tolerance string    `json:"tolerance" doc:"how far clocks may be apart, or be set, before that is a jump"`
}

// ClockSet has the recorded time be what the machine shows.
type ClockSet struct {
	Time   time.Time `json:"time" doc:"what the time is, by another clock; refused where the machine's differs by more than the tolerance"`
	Reason string    `json:"reason" minLength:"1" maxLength:"200" doc:"why, for the audit log"`
}
