package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Registrant is the port that something is registered for.
type Registrant struct {
	Port   ib.GUID  `json:"port_guid"`
	Alias  ib.GUID  `json:"alias_guid,omitzero" doc:"GUID of the port that is meant, if it is not its own"`
	Name   string   `json:"name,omitempty" doc:"the port as NODE/PORT; empty: it is not seen"`
	LID    ib.LID   `json:"lid,omitzero"`
	Place  ib.Place `json:"place,omitzero" doc:"switch port it is cabled to"`
	At     string   `json:"at,omitempty" doc:"the same, by name: leaf1/7"`
	Host   string   `json:"host,omitempty" doc:"inventory's name of what is cabled there"`
	Tenant string   `json:"tenant,omitempty" doc:"whose host that is"`
}

// FabricGroup is a multicast group.
type FabricGroup struct {
	MGID       ib.GID   `json:"mgid"`
	MLID       ib.LID   `json:"mlid"`
	PKey       ib.PKey  `json:"p_key"`
	QKey       string   `json:"q_key" doc:"no secret: all members receive it"`
	MTU        int      `json:"mtu" doc:"bytes"`
	Rate       int      `json:"rate_mbps"`
	LifeTime   uint8    `json:"packet_lifetime" doc:"code of the standard: 4.096 us times 2 to this power"`
	SL         ib.SL    `json:"sl"`
	TClass     uint8    `json:"traffic_class"`
	FlowLabel  uint32   `json:"flow_label"`
	HopLimit   uint8    `json:"hop_limit"`
	Configured bool     `json:"configured" doc:"it is there without members, too"`
	Members    int      `json:"members"`
	Roots      []string `json:"tree_roots" nullable:"false" doc:"top switch of the tree of its multicast LID, by name; several where the fabric is in parts"`
	Switches   int      `json:"tree_switches" doc:"switches of the tree"`
}

// FabricMember is a member of a multicast group.
type FabricMember struct {
	Registrant
	JoinState string  `json:"join_state" doc:"Full, Non, SendOnlyNon, SendOnlyFull, or several with | between"`
	Proxy     bool    `json:"proxy,omitempty" doc:"another port joined for it"`
	By        ib.GUID `json:"joined_by,omitzero" doc:"port GUID of who did, if it was another"`
}

// FabricService is a service that a port offers. Neither its key nor its data are shown.
type FabricService struct {
	ID   ib.ServiceID `json:"service_id"`
	Name string       `json:"service_name" doc:"what is no printable character is replaced"`
	GID  ib.GID       `json:"service_gid"`
	Registrant
	PKey    ib.PKey   `json:"p_key,omitzero" doc:"who has it may know; none: who can talk to the port"`
	Expires time.Time `json:"expires,omitzero" doc:"none: never"`
	Keyed   bool      `json:"keyed" doc:"it has a ServiceKey"`
}

// FabricSubscription is a subscription to notices.
type FabricSubscription struct {
	Registrant
	Enum    uint16 `json:"enum" doc:"distinguishes the subscriptions of a port"`
	What    string `json:"notices" doc:"what of: traps 64 (GID in service), all traps, notices of a vendor"`
	About   string `json:"about" doc:"ports that they are about: all, a GID or LIDs"`
	QPN     string `json:"qpn" doc:"queue pair that reports go to"`
	Trusted bool   `json:"trusted" doc:"it showed the SA_Key: it receives all"`
}

// FabricAlias is an alias GUID that a port was given.
type FabricAlias struct {
	Registrant
	Entry  int  `json:"entry" doc:"of the GUID table of the port"`
	Proven bool `json:"proven" doc:"read back from the port"`
}

// FabricSA is how subnet administration stands.
type FabricSA struct {
	Observed      time.Time         `json:"observed"`
	Serving       bool              `json:"serving" doc:"hosts are answered"`
	Groups        int               `json:"groups"`
	Services      int               `json:"services"`
	Subscriptions int               `json:"subscriptions"`
	Aliased       int               `json:"aliased_ports" doc:"ports that were given alias GUIDs"`
	KeyEpoch      uint32            `json:"key_epoch,omitempty" doc:"number of the SA_Key in force; none: there is none"`
	KeySince      time.Time         `json:"key_since,omitzero" doc:"when it came into force; none: it is that of a file"`
	KeyGrace      time.Time         `json:"key_grace,omitzero" doc:"until when the one before is taken"`
	Packets       uint64            `json:"packets"`
	Answers       uint64            `json:"answers" doc:"of one MAD"`
	Tables        uint64            `json:"tables" doc:"begun"`
	Unserved      uint64            `json:"unserved" doc:"came while no request was answered"`
	Costly        uint64            `json:"costly" doc:"questions dropped since the answer would have cost too much"`
	Refused       map[string]uint64 `json:"refused" doc:"requests dropped for security, by why"`
	Limited       map[string]uint64 `json:"limited" doc:"packets that the limiter dropped, by lane and why: administration/node-rate"`
	Sessions      int               `json:"sessions" doc:"messages of several segments that are under way"`
	Reports       SAReports         `json:"reports"`
}

// SAReports counts reports to subscribers.
type SAReports struct {
	Sent     uint64 `json:"sent"`
	Resent   uint64 `json:"resent"`
	Answered uint64 `json:"answered"`
	Failed   uint64 `json:"failed"`
	Dropped  uint64 `json:"dropped" doc:"for want of room"`
	OnWire   int    `json:"on_wire"`
	Queued   int    `json:"queued"`
}

// RegisteredQuery says whose registrations are asked for. Empty fields ask for all.
type RegisteredQuery struct {
	Port   string `query:"port" maxLength:"128" doc:"of this end port only: GUID, LID, NODE or NODE/PORT"`
	Host   string `query:"host" maxLength:"128" doc:"of this host only, as inventory calls it, or, where inventory has none, the adapter itself"`
	Tenant string `query:"tenant" maxLength:"128" doc:"of hosts of this tenant only"`
	PageQuery
}

// GroupQuery says which groups are asked for: those with a member that a RegisteredQuery
// is about.
type GroupQuery struct {
	MGID string `query:"mgid" maxLength:"64" doc:"this group only"`
	PKey string `query:"p_key" maxLength:"8" doc:"of this partition only, by either of its P_Keys"`
	RegisteredQuery
}

// ServiceQuery says which services are asked for.
type ServiceQuery struct {
	ID   string `query:"service_id" maxLength:"18" doc:"with this ServiceID only"`
	Name string `query:"service_name" maxLength:"64" doc:"with this name only"`
	PKey string `query:"p_key" maxLength:"8" doc:"of this partition only, by either of its P_Keys"`
	RegisteredQuery
}
