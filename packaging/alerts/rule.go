package alerts

// Severity is the label by which alerts are routed.
type Severity string

// Severities.
const (
	// Critical: isolation, admission or the management of the fabric is at stake now.
	Critical Severity = "critical"
	// Warning: it can wait for the next working day.
	Warning Severity = "warning"
)

// Series is a time series of a test: its labels but for those that every scrape has, and its values in promtool's notation,
// one a minute.
type Series struct {
	Name   string // of the metric
	Labels string // `state="clear"`, without braces; empty: none
	Values string // `0x60`: 0, and 60 times more
	From   string // instance; empty: the usual one
}

// Rule is an alert.
type Rule struct {
	Name     string // without "Portcullis" in front
	Expr     string
	For      string // how long Expr must hold; empty: not at all
	Severity Severity

	Summary string   // one line, with labels as {{ $labels.x }}
	Means   string   // what the alert says, for the page
	Do      []string // what to do about it, in order
	More    string   // link to another page; empty: there is none

	Fires  []Series          // with which it fires after an hour
	Labels map[string]string // that it then has, beside severity and those of the scrape
	Scrape bool              // it has the labels instance and job of the scrape
	Says   string            // the summary that it then has
	Quiet  []Series          // healthy values, with which it does not fire
}

// Group is a list of rules about one part.
type Group struct {
	Name  string // of the group of rules
	Title string // of the section of the page
	Rules []Rule
}

// Groups returns all alerts.
func Groups() []Group {
	return []Group{
		{"portcullis-manager", "Fabric manager", manager()},
		{"portcullis-topology", "Routes, links and the declared topology", topology()},
		{"portcullis-ports", "Ports: errors and congestion", ports()},
		{"portcullis-admission", "Admission and hosts", admission()},
		{"portcullis-security", "Violations and keys", security()},
		{"portcullis-evidence", "Audit log, evidence and proof", evidence()},
		{"portcullis-instances", "Instances", instances()},
		{"portcullis-store", "Store, backups and webhooks", store()},
	}
}
