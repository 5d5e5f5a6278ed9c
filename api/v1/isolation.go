package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Verdicts of Isolation.
const (
	Isolated         = "isolated" // proven: no packet passes
	Leaks            = "leaks"    // a packet passes
	IsolationUnknown = "unknown"  // not proven: something was not read, or is not there
)

// IsolationQuery asks whether tenants are isolated.
type IsolationQuery struct {
	Tenant     string `query:"tenant" maxLength:"63" doc:"only pairs of this tenant; none: all"`
	Membership bool   `query:"membership" doc:"assume that switches refuse inbound packets that claim full membership where the port is a limited member; no attribute shows whether they do"`
}

// Isolation says whether tenants are isolated from each other, proven from the tables that devices were read to hold.
type Isolation struct {
	Verdict    string             `json:"verdict" enum:"isolated,leaks,unknown" doc:"of the worst pair; isolated only if everything is"`
	Reason     string             `json:"reason,omitempty" doc:"why the verdict is unknown"`
	Tenant     string             `json:"tenant,omitempty" doc:"if one was asked for"`
	Pairs      IsolationPairs     `json:"pairs" doc:"two tenants each, or a tenant and other hosts"`
	Held       IsolationDepth     `json:"held" doc:"what holds the isolated pairs apart"`
	Parties    []IsolationParty   `json:"parties" doc:"the worst first"`
	Examples   []IsolationExample `json:"examples" doc:"packets that pass or may pass, at most 20; those that pass first"`
	Missing    []MissingPort      `json:"missing" doc:"declared ports that were not found, at most 100; of their tenants nothing is proven"`
	Undeclared []UndeclaredPort   `json:"undeclared" doc:"ports that were found and are not declared where they are, at most 100"`
	Ghosts     []GhostMember      `json:"ghosts" doc:"ports that hold a P_Key of a tenant which no membership explains, at most 100; that alone is no packet that passes"`
	// ByRoutes are of the pairs that are not proven.
	ByRoutes []IsolationByRoutes `json:"by_routes,omitempty" doc:"parties that only forwarding tables keep apart, at most 100; a change of routes may let a packet pass"`
	Unread   []UnreadValue       `json:"unread" doc:"values that were not read, at most 100; each but alias GUIDs and SLtoVL tables, which are last, counts as letting every packet pass"`
	// Administration is about the fabric as a whole; with a tenant, its disclosures are those from and about the tenant.
	Administration IsolationAdministration `json:"administration" doc:"what subnet administration answers to ports without its key; two parties of which one is disclosed to the other are not proven to be isolated"`
	Bounds         IsolationBounds         `json:"bounds"`
}

// What an examination was made by.
const (
	ByRequest = "request" // a person or a program asked for it, or for a receipt
	ByItself  = "service" // the service, as its configuration says
)

// IsolationKept is what was found when all tenants were examined last.
type IsolationKept struct {
	Found    Isolation  `json:"found"`
	By       string     `json:"by" enum:"request,service" doc:"what had the tenants examined; service: its configuration"`
	Age      float64    `json:"age_seconds" doc:"since the first request of the reading"`
	MaxAge   float64    `json:"max_age_seconds" doc:"a result that is older proves nothing any more"`
	Current  bool       `json:"current" doc:"it is not older"`
	Every    float64    `json:"every_seconds" doc:"from one examination by the service itself to the next; 0: it makes none"`
	Failure  string     `json:"failure,omitempty" doc:"why a newer attempt of the service has no result"`
	FailedAt *time.Time `json:"failed_at,omitempty" doc:"when that attempt ended"`
}

// IsolationPairs counts pairs by verdict.
type IsolationPairs struct {
	Isolated int `json:"isolated"`
	Leaks    int `json:"leaks"`
	Unknown  int `json:"unknown"`
}

// IsolationDepth counts isolated pairs by what holds them apart.
type IsolationDepth struct {
	Each     int `json:"each" doc:"switches hold if adapters do not, and adapters if switches do not"`
	Switches int `json:"switches" doc:"switches alone hold; adapters alone would not"`
	Adapters int `json:"adapters" doc:"adapters alone hold; switches alone would not"`
	Together int `json:"together" doc:"neither holds alone"`
}

// IsolationParty is a tenant, or other hosts that tenants must be isolated from.
type IsolationParty struct {
	Name     string         `json:"name"`
	Tenant   bool           `json:"tenant" doc:"false: hosts of no tenant, undeclared devices, spare ports"`
	Verdict  string         `json:"verdict" enum:"isolated,leaks,unknown"`
	Declared int            `json:"declared" doc:"ports"`
	Found    int            `json:"found" doc:"of these, where they are declared"`
	Pairs    IsolationPairs `json:"pairs"`
}

// IsolationExample is a packet that passes from one party to another, and the change that stops it.
type IsolationExample struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Certain bool           `json:"certain" doc:"it passes; false: it may pass, depending on what was not read"`
	PKey    ib.PKey        `json:"pkey,omitzero" doc:"of the packet"`
	Raw     bool           `json:"raw,omitempty" doc:"it is a raw packet, without a P_Key"`
	DLID    ib.LID         `json:"dlid,omitzero" doc:"of the packet; none: no forwarding table decides"`
	Hops    []IsolationHop `json:"hops"`
	Cure    string         `json:"cure" doc:"the smallest change after which no packet passes between these two ports"`
}

// IsolationHop is a device on the way of a packet.
type IsolationHop struct {
	Device string     `json:"device"`
	In     ib.PortNum `json:"in,omitzero" doc:"none: the way begins here"`
	Out    ib.PortNum `json:"out,omitzero" doc:"none: the way ends here"`
	Passed []string   `json:"passed" doc:"why the device lets the packet pass"`
}

// IsolationByRoutes is two parties whose P_Key tables would let a packet pass, and that only forwarding tables keep apart.
type IsolationByRoutes struct {
	A string `json:"a"`
	B string `json:"b"`
}

// MissingPort is a declared port that was not found where it is declared.
type MissingPort struct {
	Host  string   `json:"host"`
	Party string   `json:"party" doc:"tenant"`
	GUID  ib.GUID  `json:"guid,omitzero" doc:"port GUID"`
	Place ib.Place `json:"place,omitzero" doc:"switch port; none: no cable is declared"`
	Cause string   `json:"cause"`
}

// UndeclaredPort is a port that was found and is not declared there.
type UndeclaredPort struct {
	GUID  ib.GUID  `json:"guid" doc:"port GUID"`
	Place ib.Place `json:"place" doc:"switch port"`
	Cause string   `json:"cause"`
}

// GhostMember is a port that holds a P_Key of a tenant which no membership explains.
type GhostMember struct {
	GUID  ib.GUID   `json:"guid,omitzero" doc:"port GUID; none: nothing holds it but the switch port"`
	Place ib.Place  `json:"place" doc:"switch port"`
	PKeys []ib.PKey `json:"pkeys" doc:"with their membership; memberships that are being withdrawn and adopted ones explain theirs"`
	Held  string    `json:"held" enum:"adapter,switch,both" doc:"whose table has them"`
}

// Which tables have a P_Key that no membership explains.
const (
	GhostInAdapter = "adapter"
	GhostInSwitch  = "switch"
	GhostInBoth    = "both"
)

// UnreadValue is a value that was not read.
type UnreadValue struct {
	What  string `json:"what"`
	Where string `json:"where"`
	Cause string `json:"cause"`
}

// IsolationBounds says what a verdict rests on.
type IsolationBounds struct {
	Begun       time.Time  `json:"begun" doc:"first request; no value is older"`
	Again       *time.Time `json:"again,omitempty" doc:"first request of the newest reading that read only what the Subnet Manager had touched since the one before; none: everything was read at once"`
	Ended       time.Time  `json:"ended" doc:"last answer"`
	Requests    int        `json:"requests" doc:"of the newest reading"`
	Devices     int        `json:"devices" doc:"found"`
	Switches    int        `json:"switches" doc:"of these"`
	Ends        int        `json:"ends" doc:"ports of hosts that were found"`
	Missing     int        `json:"missing" doc:"declared ports that were not found"`
	Undeclared  int        `json:"undeclared" doc:"ports found that are not declared"`
	Ghosts      int        `json:"ghosts" doc:"ports that hold a P_Key of a tenant which no membership explains"`
	Unread      int        `json:"unread" doc:"values that were not read"`
	Strays      int        `json:"strays" doc:"packets that answered no request"`
	Assumptions []string   `json:"assumptions" doc:"what the verdict takes for granted"`
}

// Newest returns when the newest reading began, of everything or of what was touched.
func (b *IsolationBounds) Newest() time.Time {
	if b.Again != nil {
		return *b.Again
	}
	return b.Begun
}

// IsolationPair is what is proven of two parties.
type IsolationPair struct {
	A       string `json:"a" doc:"party; the lesser name"`
	B       string `json:"b" doc:"party; the greater name"`
	Verdict string `json:"verdict" enum:"isolated,leaks,unknown"`
	Held    string `json:"held,omitempty" enum:"each,switches,adapters,together" doc:"what holds an isolated pair apart; the words are those of IsolationDepth"`
}

// What holds a pair apart.
const (
	HeldByEach     = "each"
	HeldBySwitches = "switches"
	HeldByAdapters = "adapters"
	HeldTogether   = "together"
)

// IsolationPort is a declared port of a tenant.
type IsolationPort struct {
	Party string    `json:"party" doc:"tenant"`
	Host  string    `json:"host"`
	GUID  ib.GUID   `json:"guid" doc:"port GUID; 0: not declared"`
	Place ib.Place  `json:"place" doc:"switch port; empty: no cable is declared"`
	PKeys []ib.PKey `json:"pkeys" doc:"that are granted to the port there and are not being withdrawn"`
	Found bool      `json:"found" doc:"where it is declared"`
}

// Unproven is the verdict about a port of which nothing follows. Isolated and Leaks are the others.
const Unproven = "unproven"

// Why a port is unproven.
const (
	PortNotFound = "not-found" // it was not found where it is declared
	PortNotRead  = "not-read"  // a packet depends on a value that was not read, or is not known
	PortOld      = "old"       // the proof is older than it counts for
)

// Which end of a packet a port is.
const (
	EndSends    = "sends"
	EndReceives = "receives"
	EndBoth     = "both"
)

// IsolationPortQuery says which ports are asked for. Empty fields ask for all. Each further field leaves out more.
type IsolationPortQuery struct {
	Host    string `query:"host" maxLength:"128" doc:"ports of this host only"`
	Tenant  string `query:"tenant" maxLength:"63" doc:"ports of this tenant only"`
	Verdict string `query:"verdict" enum:"isolated,leaks,unproven" doc:"ports with this verdict only"`
	PageQuery
}

// IsolationPorts is a page of what the newest examination of all tenants proves of each port.
type IsolationPorts struct {
	Begun   time.Time              `json:"begun" doc:"first request of the reading"`
	Ended   time.Time              `json:"ended" doc:"last answer"`
	Age     float64                `json:"age_seconds" doc:"since the first request of the reading"`
	MaxAge  float64                `json:"max_age_seconds" doc:"a result that is older proves nothing any more"`
	Current bool                   `json:"current" doc:"it is not older"`
	Items   []IsolationPortVerdict `json:"items" nullable:"false" doc:"by host, GUID and place"`
	Next    string                 `json:"next,omitempty" doc:"value of after for the next page; absent: this is the last one"`
}

// IsolationPortVerdict is what is proven of the packets of one declared port. A tenant may be worse than its ports: with one that
// was not found, nothing is proven of it.
type IsolationPortVerdict struct {
	Host    string   `json:"host"`
	Tenant  string   `json:"tenant,omitempty" doc:"when the fabric was read; absent: none"`
	GUID    ib.GUID  `json:"guid" doc:"port GUID; 0: not declared"`
	Place   ib.Place `json:"place,omitzero" doc:"switch port; absent: no cable is declared"`
	Verdict string   `json:"verdict" enum:"isolated,leaks,unproven" doc:"isolated: no packet passes between the port and a port of another tenant; leaks: one passes"`
	Held    string   `json:"held,omitempty" enum:"each,switches,adapters,together" doc:"what holds an isolated port apart; the words are those of IsolationDepth"`
	End     string   `json:"end,omitempty" enum:"sends,receives,both" doc:"which end of a packet the port is that passes, or may pass"`
	Other   string   `json:"other,omitempty" doc:"the party at the other end; of several, one; absent for the credential of a tenant"`
	Cause   string   `json:"cause,omitempty" enum:"not-found,not-read,old" doc:"why it is unproven"`
	Detail  string   `json:"detail,omitempty" doc:"more about the cause; absent for the credential of a tenant"`
}

// Verdicts of IsolationAdministration.
const (
	SAConfined    = "confined"     // no answer named a port that the asker must not know, or showed a key
	SADiscloses   = "discloses"    // an answer did
	SAUnknown     = "unknown"      // none did, and not all answers could be judged
	SANotExamined = "not-examined" // nothing was asked, or answered
)

// IsolationAdministration says what subnet administration answers to ports that show no SA_Key, judged by the tables that were read.
type IsolationAdministration struct {
	Verdict   string `json:"verdict" enum:"confined,discloses,unknown,not-examined" doc:"discloses: an answer named a port, or a partition, of another party with which the port that asked shares no P_Key, or showed a key"`
	Reason    string `json:"reason,omitempty" doc:"why the verdict is unknown or not-examined"`
	Ports     int    `json:"ports" doc:"ports that asked, drawn at random"`
	Parties   int    `json:"parties" doc:"tenants, hosts without a tenant and undeclared devices, of which one port asked at least"`
	Unasked   int    `json:"unasked" doc:"further such parties, of which none did: there are more than ports that ask, or their LIDs are not known, or claimed by several ports"`
	Silent    int    `json:"silent" doc:"ports that asked and were not answered at all"`
	Questions int    `json:"questions" doc:"that were asked, also from a LID that no port has"`
	Answers   int    `json:"answers"`
	Records   int    `json:"records" doc:"in the answers"`
	Undecided int    `json:"undecided" doc:"names in records that could not be judged, and answers that were not whole"`
	Disclosed int    `json:"disclosed" doc:"names and keys that were disclosed"`

	Disclosures []IsolationDisclosure `json:"disclosures" doc:"at most 20"`
}

// IsolationDisclosure is something that was answered to a port and that it must not know.
type IsolationDisclosure struct {
	From   DisclosurePort `json:"from" doc:"the port that asked; empty: a LID that no port has"`
	Record string         `json:"record" doc:"kind of the record"`
	Field  string         `json:"field" doc:"of the record"`
	Value  string         `json:"value,omitempty" doc:"of the field; never a key"`
	About  DisclosurePort `json:"about" doc:"the port that was named; empty: a partition, or a key"`
	PKey   ib.PKey        `json:"pkey,omitzero" doc:"of the partition that was named"`
	Secret bool           `json:"secret,omitempty" doc:"the field is a key"`
	Cure   string         `json:"cure"`
}

// DisclosurePort is a port of a disclosure.
type DisclosurePort struct {
	Party string   `json:"party,omitempty" doc:"tenant, or other hosts"`
	Host  string   `json:"host,omitempty" doc:"empty: it is not declared there"`
	GUID  ib.GUID  `json:"guid,omitzero" doc:"port GUID"`
	Place ib.Place `json:"place,omitzero" doc:"switch port"`
	LID   ib.LID   `json:"lid,omitzero"`
}
