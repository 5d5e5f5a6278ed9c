package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Fabric is what the subnet manager sees.
type Fabric struct {
	Observed time.Time    `json:"observed,omitzero"` // when the SM last published
	Summary  FabricCounts `json:"summary"`
	Nodes    []Node       `json:"nodes"` // sorted by GUID
}

// FabricCounts counts nodes, ports and links.
type FabricCounts struct {
	Switches    int `json:"switches"`
	CAs         int `json:"cas"`
	Routers     int `json:"routers"`
	Links       int `json:"links"`
	ActivePorts int `json:"active_ports"`
}

// Node is a switch, CA or router as seen.
type Node struct {
	GUID        ib.GUID `json:"guid"`
	Type        string  `json:"type"` // "switch", "CA", "router"
	Description string  `json:"description"`
	Host        string  `json:"host,omitempty"` // inventory's name for its owner
	NumPorts    int     `json:"num_ports,omitempty" doc:"external ports that the node has, of which ports has those with a cable"`
	Ports       []Port  `json:"ports"`
	// OutOfSight says that the node is not seen now, and that the rest is as it was seen last.
	OutOfSight bool `json:"out_of_sight,omitempty"`
}

// Port is one connected port of a node.
type Port struct {
	Num   ib.PortNum `json:"port"`
	GUID  ib.GUID    `json:"guid,omitzero"`
	LID   ib.LID     `json:"lid,omitzero"`
	State string     `json:"state"`
	Peer  string     `json:"peer,omitempty"` // "GUID/port"
	PKeys []ib.PKey  `json:"p_keys,omitzero"`
	// PKeysOmitted is how many more P_Keys the port holds than are listed.
	PKeysOmitted int `json:"p_keys_omitted,omitzero"`
}

// SM is the state of the subnet manager.
type SM struct {
	State    string         `json:"state"` // SMInfo state, or "unreachable"
	GUID     ib.GUID        `json:"guid,omitzero"`
	LID      ib.LID         `json:"lid,omitzero"`
	Priority uint8          `json:"priority"`
	Settled  bool           `json:"settled"` // observed equals wanted
	Pending  int            `json:"pending"` // requests on the wire
	Revision int64          `json:"revision"`
	SMPs     map[string]int `json:"smps,omitempty"` // sent, by "Get NodeInfo" and so on
	Problems []string       `json:"problems,omitempty"`
	Mute     []ib.GUID      `json:"mute_switches,omitempty" doc:"node GUIDs of switches that send no trap 259 of a wrong P_Key; counters of their ports are read instead"`
	Updated  time.Time      `json:"updated,omitzero"`
	Sight    Sight          `json:"sight,omitzero"` // zero: not judged yet
	Leadership
}

// Leadership says which of several instances manages the fabric. It is zero where there is
// one instance only.
type Leadership struct {
	Leader    string     `json:"leader,omitempty"` // name of the instance; "": none leads at this moment
	Epoch     uint64     `json:"epoch,omitempty"`  // of its term; each term has a higher one
	Since     time.Time  `json:"since,omitzero"`   // when the term began
	Instances []Instance `json:"instances,omitempty"`
}

// Instance is one of several instances of the service.
type Instance struct {
	Name    string    `json:"name"`
	API     string    `json:"api,omitempty"`     // where its API is reached; "": it has none
	Manages bool      `json:"manages,omitempty"` // it can lead as Subnet Manager
	Port    ib.GUID   `json:"port,omitzero"`     // by which it managed the fabric last
	Place   string    `json:"place,omitempty"`   // "SWITCH/PORT" that the port is cabled to
	Seen    time.Time `json:"seen"`              // when it wrote its record
}

// StepDown asks the leader to end its term.
type StepDown struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"for the audit log"`
}
