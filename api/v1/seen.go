package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Page is a part of a long list, in the order of Key. Next, when it is not empty, goes into the query for the part that
// follows. Pages may come from different moments; an item that did not change between them is in exactly one.
type Page[T any] struct {
	Observed time.Time `json:"observed" doc:"when the subnet manager showed this"`
	Settled  bool      `json:"settled" doc:"whether the fabric then was as it is wanted"`
	Items    []T       `json:"items" nullable:"false"`
	Next     string    `json:"next,omitempty" doc:"value of after for the next page"`
}

// Overview counts what the subnet manager sees.
type Overview struct {
	Observed time.Time   `json:"observed"`
	State    string      `json:"state" doc:"SMInfo state of the subnet manager"`
	Settled  bool        `json:"settled"`
	Phase    string      `json:"phase" doc:"discovery, routing, forwarding, ports, settling, settled or standby"`
	GUID     ib.GUID     `json:"sm_guid" doc:"port of the subnet manager"`
	LID      ib.LID      `json:"sm_lid"`
	Priority uint8       `json:"priority"`
	Nodes    NodeCounts  `json:"nodes"`
	Ports    PortCounts  `json:"ports"`
	Links    []LinkKind  `json:"links" nullable:"false" doc:"links by width and speed, fastest first"`
	Degraded int         `json:"degraded_links"`
	Routing  RoutingInfo `json:"routing"`
	PKeys    int         `json:"p_keys" doc:"partitions that some port is a member of, but for the default one"`
	Faults   []Fault     `json:"faults" nullable:"false"`
}

// NodeCounts counts nodes by type.
type NodeCounts struct {
	Switches int `json:"switches"`
	CAs      int `json:"cas"`
	Routers  int `json:"routers"`
}

// PortCounts counts ports with a cable by state.
type PortCounts struct {
	Cabled int `json:"cabled"`
	Active int `json:"active"`
	Armed  int `json:"armed"`
	Init   int `json:"init"`
	Down   int `json:"down"`
	Unread int `json:"unread" doc:"state not read yet"`
}

// LinkKind counts the links of one width and speed.
type LinkKind struct {
	Width string `json:"width"`
	Speed string `json:"speed"`
	Rate  int    `json:"rate_mbps" doc:"nominal data rate, Mb/s; 0: not known"`
	Count int    `json:"count"`
}

// RoutingInfo says how packets are routed.
type RoutingInfo struct {
	Engine  string  `json:"engine,omitempty" doc:"empty: no tables yet"`
	LIDs    int     `json:"lids" doc:"end port LIDs with routes"`
	MaxLID  ib.LID  `json:"max_lid"`
	Lanes   int     `json:"lanes" doc:"virtual lanes that routes are dealt to"`
	Seconds float64 `json:"seconds" doc:"of the last computation"`
}

// Fault is one thing that is wrong now.
type Fault struct {
	Kind  string   `json:"kind" doc:"link-dead, node-silent and so on"`
	GUID  ib.GUID  `json:"guid,omitzero"`
	PKey  ib.PKey  `json:"p_key,omitzero"`
	Place ib.Place `json:"place,omitzero"`
	At    string   `json:"at,omitempty" doc:"where that is, by name: leaf1/7"`
	Text  string   `json:"text"`
}

// FabricNode is a node as seen.
type FabricNode struct {
	GUID        ib.GUID `json:"guid"`
	Type        string  `json:"type" doc:"switch, CA or router"`
	Name        string  `json:"name" doc:"the description if no other node has it, else the GUID"`
	Description string  `json:"description,omitempty" doc:"as the device says; never trusted"`
	Host        string  `json:"host,omitempty" doc:"inventory's name for its owner"`
	System      ib.GUID `json:"system_guid,omitzero"`
	Vendor      string  `json:"vendor_id"`
	Device      uint16  `json:"device_id"`
	LID         ib.LID  `json:"lid,omitzero" doc:"of a switch"`
	Ports       int     `json:"ports" doc:"external ports"`
	Cabled      int     `json:"cabled"`
	Active      int     `json:"active"`
	Problem     string  `json:"problem,omitempty"`
}

// FabricPort is a port as seen.
type FabricPort struct {
	Node        ib.GUID    `json:"node_guid"`
	Num         ib.PortNum `json:"port"`
	Type        string     `json:"type" doc:"of the node: switch, CA or router"`
	Name        string     `json:"name" doc:"of the node"`
	Host        string     `json:"host,omitempty" doc:"inventory's name for the owner"`
	GUID        ib.GUID    `json:"guid,omitzero" doc:"of an end port"`
	LID         ib.LID     `json:"lid,omitzero" doc:"of an end port"`
	LMC         ib.LMC     `json:"lmc,omitempty"`
	State       string     `json:"state" doc:"Down, Init, Armed, Active; Nop: not read yet"`
	Phys        string     `json:"phys_state"`
	Width       string     `json:"width,omitempty" doc:"of the link"`
	Speed       string     `json:"speed,omitempty" doc:"of the link"`
	Rate        int        `json:"rate_mbps,omitempty"`
	MTU         int        `json:"mtu,omitempty" doc:"in force, bytes"`
	Peer        *PortName  `json:"peer,omitempty" doc:"the other end of the cable"`
	Place       ib.Place   `json:"place,omitzero" doc:"switch port that a host's port is cabled to"`
	PKeys       []ib.PKey  `json:"p_keys,omitzero"`
	PKeysProven bool       `json:"p_keys_proven,omitempty" doc:"read back since they were last written"`
	Degraded    string     `json:"degraded,omitempty" doc:"what both ends offer, if the link does less"`
	Problem     string     `json:"problem,omitempty"`
}

// PortName names a port.
type PortName struct {
	Node ib.GUID    `json:"node_guid"`
	Num  ib.PortNum `json:"port"`
	Name string     `json:"name" doc:"of the node"`
	Type string     `json:"type" doc:"of the node"`
	Host string     `json:"host,omitempty"`
}

// FabricLink is a cable as seen, from the end with the lower node GUID.
type FabricLink struct {
	A        PortName `json:"a"`
	B        PortName `json:"b"`
	State    string   `json:"state" doc:"the lower state of the two ends"`
	Width    string   `json:"width"`
	Speed    string   `json:"speed"`
	Rate     int      `json:"rate_mbps"`
	MTU      int      `json:"mtu"`
	Degraded string   `json:"degraded,omitempty" doc:"what both ends offer, if the link does less"`
	Problem  string   `json:"problem,omitempty"`
}

// FabricRoutes is how packets get from one end port to another, and back.
type FabricRoutes struct {
	Observed time.Time   `json:"observed"`
	Settled  bool        `json:"settled" doc:"false: switches may not have these tables yet"`
	From     FabricPort  `json:"from"`
	To       FabricPort  `json:"to"`
	Shared   []ib.PKey   `json:"shared_p_keys" nullable:"false" doc:"partitions in which the two can talk"`
	There    FabricRoute `json:"there"`
	Back     FabricRoute `json:"back"`
	Problems []string    `json:"problems" nullable:"false" doc:"what keeps the two from talking, as far as the fabric shows"`
}

// FabricRoute is one direction.
type FabricRoute struct {
	SL    ib.SL       `json:"sl"`
	Links int         `json:"links" doc:"links that packets cross"`
	Rate  int         `json:"rate_mbps" doc:"of the slowest link"`
	Hops  []FabricHop `json:"hops" nullable:"false"`
	Error string      `json:"error,omitempty" doc:"why packets do not arrive"`
}

// FabricHop is a node on a route.
type FabricHop struct {
	Node  ib.GUID    `json:"node_guid"`
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	LID   ib.LID     `json:"lid,omitzero"`
	In    ib.PortNum `json:"in,omitempty" doc:"0: the route begins here"`
	Out   ib.PortNum `json:"out,omitempty" doc:"0: the route ends here"`
	VL    ib.VL      `json:"vl" doc:"on the link that leaves"`
	Width string     `json:"width,omitempty"`
	Speed string     `json:"speed,omitempty"`
	Load  int        `json:"load,omitempty" doc:"routes between hosts that use the link that leaves, this way"`
}

// FabricTable is a switch's forwarding table in short.
type FabricTable struct {
	GUID   ib.GUID `json:"guid"`
	Name   string  `json:"name"`
	LID    ib.LID  `json:"lid"`
	Routed int     `json:"routed" doc:"LIDs with a route"`
	Blocks int     `json:"blocks" doc:"blocks of 64 LIDs"`
	Ports  int     `json:"ports" doc:"egress ports in use"`
	Least  int     `json:"least" doc:"LIDs of the least used of those towards switches"`
	Most   int     `json:"most" doc:"LIDs of the most used of those towards switches"`
}

// FabricEntry is one entry of a switch's forwarding table.
type FabricEntry struct {
	LID   ib.LID     `json:"lid"`
	Out   ib.PortNum `json:"port" doc:"0: the switch itself"`
	Via   *PortName  `json:"via,omitempty" doc:"the port at the other end of the cable"`
	Owner *PortName  `json:"owner,omitempty" doc:"the end port that has the LID"`
}

// SMProgress is how far the subnet manager is.
type SMProgress struct {
	Observed time.Time     `json:"observed"`
	Now      time.Time     `json:"now" doc:"clock of the subnet manager's host"`
	Started  time.Time     `json:"started"`
	State    string        `json:"state"`
	Settled  bool          `json:"settled"`
	Phase    string        `json:"phase"`
	GUID     ib.GUID       `json:"sm_guid"`
	LID      ib.LID        `json:"sm_lid"`
	Priority uint8         `json:"priority"`
	Revision int64         `json:"revision"`
	Nodes    NodeCounts    `json:"nodes"`
	Ports    PortCounts    `json:"ports"`
	Links    int           `json:"links"`
	Routing  RoutingInfo   `json:"routing"`
	Busy     bool          `json:"routing_busy"`
	SMPs     []SMPKind     `json:"smps" nullable:"false" doc:"sent, by method and attribute"`
	Sent     uint64        `json:"sent"`
	Answered uint64        `json:"answered"`
	Refused  uint64        `json:"refused"`
	Timeouts uint64        `json:"timeouts"`
	Nobody   uint64        `json:"undelivered" doc:"requests that no process took"`
	Retries  uint64        `json:"retries"`
	Dropped  uint64        `json:"dropped" doc:"MADs that came and meant nothing"`
	Traps    uint64        `json:"traps"`
	Out      int           `json:"outstanding"`
	Window   int           `json:"window"`
	Queues   []Queue       `json:"queues" nullable:"false" doc:"work that waits, by what it asks for; empty ones left out"`
	Blocks   int           `json:"lft_blocks_left"`
	Behind   int           `json:"lft_switches_left"`
	Waiting  int           `json:"ports_waiting" doc:"Armed, until forwarding is in place"`
	Pauses   int           `json:"pauses" doc:"requests that wait to be tried again"`
	Settles  []SettledWork `json:"settled_last" nullable:"false" doc:"the last times the fabric was settled, newest last"`
	Events   []SMEvent     `json:"events" nullable:"false" doc:"newest last"`
	Faults   []Fault       `json:"faults" nullable:"false" doc:"at most 100"`
	NFaults  int           `json:"fault_count"`
}

// SMPKind counts requests of a kind.
type SMPKind struct {
	Method    string `json:"method"`
	Attribute string `json:"attribute"`
	Sent      uint64 `json:"sent"`
}

// Queue is work that waits.
type Queue struct {
	Name string `json:"name"`
	Len  int    `json:"length"`
}

// SettledWork is what it took until the fabric was settled.
type SettledWork struct {
	Time     time.Time `json:"time"`
	Revision int64     `json:"revision"`
	Cause    string    `json:"cause"`
	SMPs     uint64    `json:"smps"`
	Seconds  float64   `json:"seconds"`
}

// SMEvent is something that happened.
type SMEvent struct {
	Time   time.Time         `json:"time"`
	Event  string            `json:"event" doc:"name of the event, port-placed"`
	Level  string            `json:"level" doc:"info, warning or debug"`
	Text   string            `json:"text"`
	Count  uint64            `json:"count" doc:"of this many in a row that are shown as one, the last"`
	Fields map[string]string `json:"fields,omitempty"`
}

// NodeQuery says which nodes are asked for. Empty fields ask for all.
type NodeQuery struct {
	Type    string `query:"type" enum:"switch,CA,router" doc:"nodes of this type only"`
	Host    string `query:"host" maxLength:"128" doc:"nodes of this host of the inventory only"`
	Problem bool   `query:"problem" doc:"only nodes with something wrong"`
	PageQuery
}

// PortQuery says which ports are asked for. Empty fields ask for all that have
// a cable.
type PortQuery struct {
	State   string `query:"state" enum:"Down,Init,Armed,Active" doc:"ports in this state only, those without a cable too"`
	Host    string `query:"host" maxLength:"128" doc:"ports of this host only, as inventory or the adapter calls it"`
	Switch  string `query:"switch" maxLength:"128" doc:"all ports of this switch only, by GUID, description or LID"`
	Node    string `query:"node" maxLength:"128" doc:"all ports of this node only, by GUID, description, host or LID"`
	Type    string `query:"type" enum:"switch,CA,router" doc:"ports of nodes of this type only"`
	Problem bool   `query:"problem" doc:"only ports with something wrong, or with a link below what both ends offer"`
	PageQuery
}

// LinkQuery says which links are asked for.
type LinkQuery struct {
	Node     string `query:"node" maxLength:"128" doc:"links of this node only"`
	Trunks   bool   `query:"trunks" doc:"only links between switches"`
	Degraded bool   `query:"degraded" doc:"only links that run below what both ends offer"`
	Problem  bool   `query:"problem" doc:"only links with something wrong"`
	PageQuery
}

// MaxPage is the most items of a page.
const MaxPage = 5000

// PageQuery says which part of a list is asked for.
type PageQuery struct {
	After string `query:"after" maxLength:"512" doc:"what the page before has as next"`
	Limit int    `query:"limit" minimum:"1" maximum:"5000" doc:"how many at most; default 1000"`
}
