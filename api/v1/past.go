package v1

import (
	"time"
)

// FabricHistory says of which times of the last day it is known how the fabric looked.
type FabricHistory struct {
	From    time.Time    `json:"from,omitzero" doc:"nothing earlier is known; absent: nothing is"`
	Until   time.Time    `json:"until,omitzero" doc:"nothing later is known; absent: nothing is"`
	Changed time.Time    `json:"changed,omitzero" doc:"the last change; absent: none is known"`
	Why     string       `json:"why,omitempty" doc:"why nothing is known since then"`
	Failure string       `json:"failure,omitempty" doc:"why nothing is recorded now; absent: it is"`
	Keep    float64      `json:"keep_seconds" doc:"what is older is removed"`
	Every   float64      `json:"every_seconds" doc:"how often the fabric is looked at, at most: what did not last longer may be missing, and a change is recorded that much later"`
	Short   bool         `json:"short,omitempty" doc:"what was recorded before from was removed, since there is room for no more"`
	Gaps    []FabricGap  `json:"gaps" nullable:"false" doc:"times between from and until of which nothing is known, the first one first"`
	Cut     int          `json:"gaps_left_out,omitempty" doc:"earlier gaps that are not listed; nothing says of the time before the first listed one whether it is known"`
	Marks   []FabricMark `json:"marks" nullable:"false" doc:"minutes in which something changed, the first one first"`
}

// FabricGap is a time of which nothing is known.
type FabricGap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// FabricMark counts the changes in one minute.
type FabricMark struct {
	Time    time.Time `json:"time" doc:"when the minute begins"`
	Changes int       `json:"changes"`
}

// PastQuery asks for a time.
type PastQuery struct {
	At time.Time `query:"at" required:"true" doc:"time (RFC 3339) at which the fabric is to be shown"`
}

// FabricPast is the fabric as the map showed it at a time.
type FabricPast struct {
	At       time.Time `json:"at"`
	Known    bool      `json:"known" doc:"false: nothing is known of that time, and all lists are empty"`
	Why      string    `json:"why,omitempty" doc:"why nothing is known of it"`
	Previous time.Time `json:"previous,omitzero" doc:"the last change before that time; absent: none is known"`
	Next     time.Time `json:"next,omitzero" doc:"the first change after it; absent: none is known"`

	Switches []PastSwitch `json:"switches" nullable:"false" doc:"by GUID"`
	Trunks   []PastTrunk  `json:"trunks" nullable:"false" doc:"pairs of switches with links between them"`
	Ports    []PastPort   `json:"ports" nullable:"false" doc:"of hosts, by the switch port they were cabled to"`

	HostsWhy string          `json:"hosts_why,omitempty" doc:"why phases and tenants of hosts are not known, which are then absent; absent: they are"`
	Proof    *IsolationPorts `json:"proof,omitempty" doc:"what was proven of each port; absent: proof_why says why"`
	ProofWhy string          `json:"proof_why,omitempty"`
}

// PastSwitch is a switch as it was.
type PastSwitch struct {
	GUID    string `json:"guid"`
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"`
}

// PastTrunk is two switches with links between them.
type PastTrunk struct {
	A      string `json:"a" doc:"GUID of the one that lists the links"`
	B      string `json:"b" doc:"GUID of the other one"`
	Links  int    `json:"links"`
	Active int    `json:"active" doc:"those in the state Active"`
}

// PastPort is a port of a host as it was.
type PastPort struct {
	Place   string `json:"place" doc:"switch port"`
	Node    string `json:"node_guid"`
	Num     string `json:"port" doc:"of the adapter"`
	Host    string `json:"host,omitempty" doc:"inventory's name for the owner"`
	Name    string `json:"name" doc:"of the node"`
	State   string `json:"state"`
	Problem string `json:"problem,omitempty"`
	Phase   string `json:"phase,omitempty" doc:"absent: in no inventory, or not known"`
	Tenant  string `json:"tenant,omitempty" doc:"absent: none, or not known"`
}

// PastChangeQuery says which changes are asked for.
type PastChangeQuery struct {
	From  time.Time `query:"from" doc:"changes at this time (RFC 3339) and later; absent: all"`
	Until time.Time `query:"until" doc:"changes at this time and earlier; absent: all"`
	PageQuery
}

// PastChanges is a page of changes, the first one first.
type PastChanges struct {
	Items []PastChange `json:"items" nullable:"false"`
	Gaps  []FabricGap  `json:"gaps" nullable:"false" doc:"times in the span of this page of which nothing is known: what changed in them is not listed"`
	Next  string       `json:"next,omitempty" doc:"value of after for the next page; absent: this is the last one"`
}

// PastChange is one thing that became another.
type PastChange struct {
	Time   time.Time   `json:"time" doc:"when it was noticed"`
	Kind   string      `json:"kind" enum:"switch,link,port,host,proof"`
	Object string      `json:"object" doc:"GUID of a switch, switch port of a link or a port, id of a host"`
	Name   string      `json:"name,omitempty" doc:"of the switch, of the host of a port, or of both ends of a link"`
	What   string      `json:"what" enum:"appeared,gone,changed"`
	Fields []PastField `json:"fields" nullable:"false" doc:"what is different; of what appeared or is gone, all that was known"`
}

// PastField is a part of an object that became another.
type PastField struct {
	Field string `json:"field" doc:"such as state, phase or verdict"`
	Was   string `json:"was,omitempty"`
	Now   string `json:"now,omitempty"`
}
