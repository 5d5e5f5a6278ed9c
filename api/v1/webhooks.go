package v1

import "time"

// Webhook is where events are sent, and how that is.
type Webhook struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind" enum:"webhook,syslog,alertmanager" doc:"what takes the events: a server of yours, a system log or an Alertmanager"`
	URL       string    `json:"url" doc:"without its query, which may be a secret"`
	Types     []string  `json:"types,omitempty" doc:"types of events that it has; none: all"`
	Severity  string    `json:"severity,omitempty" doc:"it has events of this severity or more; none: of all"`
	Position  string    `json:"position,omitempty" doc:"events up to it were delivered, wait, or are not wanted"`
	Delivered time.Time `json:"delivered,omitzero" doc:"the last delivery that is on record"`
	Failing   time.Time `json:"failing,omitzero" doc:"since when all attempts fail"`
	Error     string    `json:"error,omitempty" doc:"of the last attempt, if that failed"`
	Waiting   int       `json:"waiting" doc:"messages that wait for another attempt"`
	Dead      int       `json:"dead" doc:"messages that failed for three days and are not tried any more"`
}

// Webhooks are all that the configuration names.
type Webhooks struct {
	Items []Webhook `json:"items"`
}

// DeadLetter is a message that failed for three days and is not tried any more.
type DeadLetter struct {
	ID       string     `json:"id" doc:"of the event"`
	Type     string     `json:"type" doc:"of the event"`
	Severity string     `json:"severity" enum:"info,notice,warning,critical"`
	First    time.Time  `json:"first" doc:"when it was to be sent first"`
	Attempts int        `json:"attempts"`
	Error    string     `json:"error,omitempty" doc:"of the last attempt"`
	Message  CloudEvent `json:"message" doc:"what was to be sent"`
}

// DeadLetters are those of a webhook, the oldest first.
type DeadLetters struct {
	Items []DeadLetter `json:"items"`
}

// Replay says which dead letters are sent once more.
type Replay struct {
	IDs    []string `json:"ids,omitempty" maxItems:"500" doc:"ids of dead letters; none: all"`
	Reason string   `json:"reason,omitempty" maxLength:"256" doc:"for the audit log"`
}

// Replayed says how many dead letters wait to be sent now.
type Replayed struct {
	Count int `json:"count"`
}

// WebhookTest is what came of a message that is about no event.
type WebhookTest struct {
	ID    string `json:"id" doc:"of the message"`
	Took  string `json:"took"`
	Error string `json:"error,omitempty" doc:"why it was not delivered; none: the server has it"`
}
