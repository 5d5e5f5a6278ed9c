package v1

import "portcullis/fabricsm/ib"

// FabricLoad is how busy a link of a switch is. A link between switches is listed once, at the end with the lower node GUID.
type FabricLoad struct {
	Node     ib.GUID    `json:"node_guid" doc:"of the switch"`
	Num      ib.PortNum `json:"port" doc:"of the switch"`
	At       string     `json:"at" doc:"that port by name: leaf1/12"`
	Peer     ib.GUID    `json:"peer_guid" doc:"of the node at the other end"`
	PeerNum  ib.PortNum `json:"peer_port"`
	To       string     `json:"to" doc:"the other end by name"`
	Host     string     `json:"host,omitempty" doc:"inventory's name for the owner of the other end"`
	Trunk    bool       `json:"trunk,omitempty" doc:"the other end is a switch, too"`
	Capacity int64      `json:"capacity,omitempty" doc:"what the link carries each way, bytes per second; absent: width or speed are not known"`
	State    string     `json:"state" enum:"known,unread,once,restarted,implausible,full,apart,narrow,no-capacity" doc:"known, or why the rate is not known: the counters were not read lately, or only once; a counter went back; they grew by more than the link carries; a counter is at its largest value; the readings are too near to each other or too far apart; the device has no counters of 64 bits; width or speed of the link are not known"`
	Rate     *LinkRate  `json:"rate,omitempty" doc:"absent while it is not known, which does not mean that the link is idle"`
}

// LoadKnown is the state of a FabricLoad whose rate is known.
const LoadKnown = "known"

// LinkRate is the mean of what a link carried between two readings of counters.
type LinkRate struct {
	Xmit   uint64  `json:"xmit" doc:"from the switch, bytes per second"`
	Rcv    uint64  `json:"rcv" doc:"to the switch, bytes per second"`
	Share  float64 `json:"share" doc:"of the capacity, in the direction that is busier: 0 to 1"`
	Wait   *uint64 `json:"wait,omitempty" doc:"ticks per second in which the switch had data to send and no credit. The length of a tick depends on the model: compare ports of one model"`
	Span   float64 `json:"span_seconds" doc:"from the first reading to the second"`
	Age    float64 `json:"age_seconds" doc:"of the second reading"`
	ByPeer bool    `json:"by_peer,omitempty" doc:"the switch at the other end counted it"`
}

// LoadQuery says of which links the load is asked for.
type LoadQuery struct {
	Node   string `query:"node" maxLength:"128" doc:"links of this node only"`
	Trunks bool   `query:"trunks" doc:"only links between switches"`
	PageQuery
}
