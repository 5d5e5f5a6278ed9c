package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Sources of the declared topology in force.
const (
	TopospecOfRevisions = "revisions" // the revisions that the service keeps
	TopospecOfFile      = "file"      // fabric.topology.file of the configuration
	TopospecNone        = "none"
)

// Topospec is the declared topology in force, and its state.
type Topospec struct {
	Source   string          `json:"source" doc:"revisions, file or none: where what is in force comes from"`
	Revision uint64          `json:"revision" doc:"wanted in force; 0: none"`
	Digest   string          `json:"digest,omitempty" doc:"of its content"`
	Mode     string          `json:"mode,omitempty" doc:"observe, warn or enforce"`
	By       string          `json:"by,omitempty" doc:"who put it into force"`
	Reason   string          `json:"reason,omitempty"`
	Since    time.Time       `json:"since,omitzero"`
	Watch    *TopospecWatch  `json:"watch,omitempty" doc:"while it is rolled back by itself if it makes things worse"`
	InForce  *TopospecPlaced `json:"in_force,omitempty" doc:"what the subnet manager compares the fabric with; none: nothing, or it is out of reach"`
	Applied  bool            `json:"applied" doc:"the subnet manager has what is wanted"`
	Problem  string          `json:"problem,omitempty" doc:"why not, or what else is wrong"`
	Two      bool            `json:"two_persons" doc:"who wrote a revision may not approve it"`
	Drafts   int             `json:"drafts" doc:"that wait for a person"`
	Version  string          `json:"version" doc:"for If-Match; changes with what is wanted"`
}

// TopospecWatch is the time after an activation.
type TopospecWatch struct {
	Until    time.Time `json:"until"`
	Back     uint64    `json:"back_to" doc:"the revision that a rollback puts into force"`
	BackMode string    `json:"back_to_mode"`
	Foretold int       `json:"foretold_links" doc:"verified links that the simulation foretold; under enforce of those that no tenant has an end of"`
	Least    int       `json:"least_links" doc:"with fewer it is rolled back"`
}

// TopospecPlaced is what the subnet manager compares the fabric with.
type TopospecPlaced struct {
	Fabric   string            `json:"fabric"`
	Revision uint64            `json:"revision"`
	Digest   string            `json:"digest"`
	Mode     string            `json:"mode"`
	Wanted   string            `json:"wanted_mode" doc:"that was asked for: enforcement begins when its guards allow it"`
	Rooted   bool              `json:"rooted" doc:"the subnet manager is where it is declared"`
	Verified int               `json:"verified_links"`
	Expected int               `json:"expected_links"`
	Missing  int               `json:"missing_links"`
	Score    int               `json:"score_permille"`
	Differ   int               `json:"differing_ports"`
	Told     map[string]uint64 `json:"told,omitempty" doc:"what was found since the start, by verdict"`
}

// TopospecRevision is a revision of the declared topology, except for its content.
type TopospecRevision struct {
	Revision  uint64             `json:"revision"`
	Digest    string             `json:"digest" doc:"of its content: what approvals are for"`
	Parent    string             `json:"parent,omitempty" doc:"digest of the revision that was in force when it was drafted"`
	Fabric    string             `json:"fabric"`
	Status    string             `json:"status" doc:"draft, active, superseded, rolled_back or rejected"`
	Mode      string             `json:"mode,omitempty" doc:"that it was last in force in"`
	Author    string             `json:"author"`
	Drafted   time.Time          `json:"drafted"`
	Reason    string             `json:"reason" doc:"why it was drafted"`
	Source    string             `json:"source" doc:"name of the file that it came in"`
	Devices   int                `json:"devices"`
	Links     int                `json:"links"`
	Expected  int                `json:"active_links" doc:"links that are to be up"`
	Approvals []TopospecApproval `json:"approvals" nullable:"false"`
	Needed    int                `json:"approvals_needed"`
	Touches   []string           `json:"touches,omitempty" doc:"changes that need two approvals"`
	Checked   *TopospecNote      `json:"validated,omitempty"`
	Simulated *TopospecNote      `json:"simulated,omitempty"`
	Activated time.Time          `json:"activated,omitzero"`
	Last      string             `json:"last_step,omitempty" doc:"who did the last step of its life, and why"`
	Version   string             `json:"version" doc:"for If-Match; changes with every step"`
}

// TopospecApproval is one person's word for one content.
type TopospecApproval struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// TopospecNote is when an actor had a revision checked, and the result.
type TopospecNote struct {
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
}

// NewTopospec is a draft: a native revision or a topoconfig.conf as it is.
type NewTopospec struct {
	Name    string `json:"name" minLength:"1" maxLength:"255" doc:"what messages call the file; of a topoconfig.conf also the fabric"`
	Content string `json:"content" doc:"native revision (JSON or YAML) or topoconfig.conf; its own revision and parent do not count"`
	Draft   bool   `json:"draft,omitempty" doc:"take a native file whose end is missing or has another digest"`
	Reason  string `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who read it later"`
}

// TopospecQuery selects revisions.
type TopospecQuery struct {
	Status string `query:"status" maxLength:"16" doc:"draft, active, superseded, rolled_back or rejected"`
	Before uint64 `query:"before" doc:"revisions below this number, the newest first; 0: all"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"at most so many; 0: 100"`
}

// TopospecRevisions is a page of revisions, the newest first.
type TopospecRevisions struct {
	Items []TopospecRevision `json:"items" nullable:"false"`
	Next  uint64             `json:"next,omitempty" doc:"value of before for the next page; 0: there is none"`
}

// TopospecCheck is what is wrong or suspicious in a revision. Content that cannot be compared with anything is refused as a
// draft.
type TopospecCheck struct {
	Fabric   string            `json:"fabric"`
	Revision uint64            `json:"revision"`
	Digest   string            `json:"digest"`
	Devices  int               `json:"devices"`
	Links    int               `json:"links"`
	Expected int               `json:"active_links"`
	Findings []TopospecFinding `json:"findings" nullable:"false"`
	Changed  int               `json:"changed" doc:"links that it has otherwise than what is in force"`
	Refused  []TopospecRefusal `json:"refused" nullable:"false" doc:"guards that refuse it whatever the fabric shows"`
}

// TopospecFinding is something to look at.
type TopospecFinding struct {
	Rule   string `json:"rule"`
	Line   int    `json:"line,omitempty"`
	Object string `json:"object"`
	Text   string `json:"text"`
}

// TopospecRefusal is a guard that says no.
type TopospecRefusal struct {
	Guard string `json:"guard" doc:"score, coverage, flips, own-path, fabric, freeze or promotion"`
	Text  string `json:"text"`
	Do    string `json:"do"`
}

// TopospecSimulation is what putting a revision into force would do to the fabric as it
// is seen now.
type TopospecSimulation struct {
	Revision uint64            `json:"revision"`
	Digest   string            `json:"digest"`
	Observed time.Time         `json:"observed"`
	Expected int               `json:"expected_links"`
	Verified int               `json:"verified_links"`
	Score    int               `json:"score_permille"`
	Live     int               `json:"live_links" doc:"links that are up now"`
	Covered  int               `json:"coverage" doc:"of these, that the revision expects, in thousandths"`
	Flips    int               `json:"flips" doc:"ports that would change from good to bad, or back"`
	Limit    int               `json:"flips_limit"`
	Missing  int               `json:"missing"`
	Hits     []TopospecHit     `json:"hits" nullable:"false" doc:"ports that would be switched off, held or kept"`
	More     int               `json:"hits_more,omitempty" doc:"that are not listed"`
	Recover  int               `json:"recover" doc:"ports that are wrong now and would be verified"`
	Changed  int               `json:"changed" doc:"links that it has otherwise than what is in force"`
	Hosts    int               `json:"hosts_hit"`
	Tenants  []string          `json:"tenants_hit" nullable:"false"`
	Refused  []TopospecRefusal `json:"refused" nullable:"false" doc:"empty: it may be activated, once it is approved"`
	Cautions []TopospecRefusal `json:"cautions" nullable:"false" doc:"guards that would refuse a stronger mode"`
	Mode     string            `json:"mode" doc:"that it would be in force in"`
	Would    bool              `json:"would_act_on" doc:"the hits are acted on: the mode is enforce"`
}

// TopospecHit is a port that would change, and the host that the change affects.
type TopospecHit struct {
	At       ib.Place `json:"at"`
	Where    string   `json:"where"`
	Verdict  string   `json:"verdict"`
	Action   string   `json:"action"`
	Expected string   `json:"expected"`
	Seen     string   `json:"seen"`
	Host     string   `json:"host,omitempty"`
	Tenant   string   `json:"tenant,omitempty"`
	New      bool     `json:"new" doc:"verified, or admitted, by the revision in force"`
}

// TopospecApprove is one person's word.
type TopospecApprove struct {
	Reason string `json:"reason,omitempty" maxLength:"512" doc:"why, for the audit log"`
	Digest string `json:"digest" minLength:"12" maxLength:"71" doc:"of what was looked at; its first twelve digits are enough"`
}

// TopospecReject ends a draft.
type TopospecReject struct {
	Reason string `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who read it later"`
}

// TopospecSimulate asks what would happen.
type TopospecSimulate struct {
	Mode string `json:"mode,omitempty" enum:"observe,warn,enforce" doc:"none: the mode in force"`
}

// TopospecActivate puts a draft into force, or what is in force into another mode.
type TopospecActivate struct {
	Mode   string `json:"mode,omitempty" enum:"observe,warn,enforce" doc:"none: the mode in force"`
	Reason string `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who read it later"`
}

// TopospecRollback puts a revision that was in force into force again.
type TopospecRollback struct {
	Revision uint64 `json:"revision,omitempty" doc:"0: the one before the present one"`
	Mode     string `json:"mode,omitempty" enum:"observe,warn,enforce" doc:"none: the milder one of the present mode and of that it had"`
	Reason   string `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who read it later"`
}

// TopospecPort is a switch port at which the fabric is not as declared.
type TopospecPort struct {
	Place    ib.Place  `json:"place"`
	At       string    `json:"at" doc:"by name: leaf1/3"`
	State    string    `json:"state"`
	Verdict  string    `json:"verdict"`
	Action   string    `json:"action" doc:"what is done"`
	Would    string    `json:"would" doc:"what enforcement would do"`
	Where    string    `json:"where" doc:"rack, unit, device and port"`
	Cable    string    `json:"cable,omitempty" doc:"its serial number"`
	Seen     string    `json:"seen,omitempty" doc:"GUID/port"`
	Expected string    `json:"expected,omitempty" doc:"GUID/port"`
	Belongs  string    `json:"belongs,omitempty" doc:"where what is seen belongs, GUID/port"`
	Page     bool      `json:"page,omitempty" doc:"a person is needed at once"`
	Host     string    `json:"host,omitempty"`
	Tenant   string    `json:"tenant,omitempty"`
	Since    time.Time `json:"since"`
	Text     string    `json:"text"`
}
