package v1

import "portcullis/fabricsm/ib"

// Rack is a rack of the inventory, and how much is in it.
type Rack struct {
	ID       string `json:"id"`
	Site     string `json:"site,omitempty"`
	SiteName string `json:"site_name,omitempty"`
	Room     string `json:"room,omitempty"`
	Units    int    `json:"units,omitempty" doc:"its height; 0: not declared"`
	Switches int    `json:"switches"`
	Hosts    int    `json:"hosts"`
}

// RackView is a rack with what stands in it.
type RackView struct {
	Rack
	Devices []RackDevice `json:"devices" nullable:"false" doc:"from the top to the bottom; those without a unit come last"`
}

// RackDevice is a device in a rack.
type RackDevice struct {
	Unit   int    `json:"unit,omitempty" doc:"the lowest one that it takes; 0: not declared"`
	Height int    `json:"height,omitempty" doc:"how many units it takes; 0: one"`
	Slot   string `json:"slot,omitempty" doc:"of several devices that share a unit"`
	Kind   string `json:"kind" enum:"switch,host"`
	ID     string `json:"id"`
	Model  string `json:"model,omitempty"`
	Role   string `json:"role,omitempty"`
	Spare  bool   `json:"spare,omitempty"`
	Cables int    `json:"cables" doc:"that end at it"`
}

// Switch is a switch of the inventory.
type Switch struct {
	ID              string  `json:"id"`
	GUID            ib.GUID `json:"guid"`
	SystemImageGUID ib.GUID `json:"system_image_guid,omitzero"`
	AggregationGUID ib.GUID `json:"aggregation_guid,omitzero" doc:"node GUID of the aggregation node inside"`
	Model           string  `json:"model,omitempty"`
	Serial          string  `json:"serial,omitempty"`
	Role            string  `json:"role,omitempty"`
	Rack            string  `json:"rack,omitempty"`
	Where           string  `json:"where" doc:"site, room, rack, unit and name, in words"`
	Ports           int     `json:"ports,omitempty" doc:"ports for cables, declared or those of the model; 0: not known"`
	Cables          int     `json:"cables" doc:"that end at it"`
	Spare           bool    `json:"spare,omitempty"`
}

// SwitchView is a switch with its cables.
type SwitchView struct {
	Switch
	Cabled []InventoryCable `json:"cabled" nullable:"false" doc:"its cables by port; place_a is always a port of this switch"`
}

// InventoryCable is a cable as inventory has it. The end A is a switch port; the end B is that of another switch, or of a host.
type InventoryCable struct {
	PlaceA ib.Place `json:"place_a"`
	A      string   `json:"a" doc:"where that is, in words"`
	PlaceB ib.Place `json:"place_b,omitzero" doc:"of a cable between switches"`
	B      string   `json:"b" doc:"where the other end is, in words"`
	Host   string   `json:"host,omitempty" doc:"of a cable to a host"`
	GUID   ib.GUID  `json:"guid,omitzero" doc:"of the port of that host"`
	Label  string   `json:"label,omitempty"`
}

// Spare is a device in stock.
type Spare struct {
	Kind   string `json:"kind" enum:"switch,host,adapter"`
	ID     string `json:"id" doc:"name of a switch or host, node GUID of an adapter"`
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	Where  string `json:"where,omitempty" doc:"in words"`
}

// RackQuery selects racks.
type RackQuery struct {
	Site string `query:"site" maxLength:"64" doc:"racks of this site only"`
	PageQuery
}

// SwitchQuery selects switches of the inventory.
type SwitchQuery struct {
	Rack string `query:"rack" maxLength:"64" doc:"switches in this rack only"`
	Role string `query:"role" enum:"leaf,spine,core" doc:"switches of this role only"`
	PageQuery
}

// CableQuery selects cables of the inventory.
type CableQuery struct {
	Rack   string `query:"rack" maxLength:"64" doc:"cables with an end in this rack only"`
	Switch string `query:"switch" maxLength:"64" doc:"cables with an end at this switch only, by name or GUID"`
	Host   string `query:"host" maxLength:"128" doc:"cables of this host only"`
	PageQuery
}

// TopospecFromInventory asks for a draft of the declared topology that is made of the inventory.
type TopospecFromInventory struct {
	Fabric string `json:"fabric,omitempty" maxLength:"128" doc:"its name, where no topology is in force"`
	Reason string `json:"reason" minLength:"1" maxLength:"512" doc:"why, for those who read it later"`
}

// InventoryCheck says where the inventory differs from the topology in force, and from the fabric as it is seen.
type InventoryCheck struct {
	Revision uint64              `json:"revision,omitzero" doc:"in force; 0: none"`
	Topology InventoryComparison `json:"topology" doc:"the inventory compared with the topology in force"`
	Fabric   InventoryComparison `json:"fabric" doc:"the cables of the inventory compared with those that are up"`
}

// InventoryComparison is one side of an InventoryCheck.
type InventoryComparison struct {
	Compared    bool                  `json:"compared"`
	Why         string                `json:"why,omitempty" doc:"it was not compared"`
	Same        int                   `json:"same" doc:"links that are the same in both"`
	Differences []InventoryDifference `json:"differences" nullable:"false" doc:"at most 1000"`
	More        int                   `json:"more,omitempty" doc:"differences that are not listed"`
}

// InventoryDifference is one difference, in physical terms.
type InventoryDifference struct {
	Kind      string `json:"kind" enum:"miss_wired,missing,unexpected,state,device_added,device_removed,device_moved,device_changed,policy" doc:"added: the inventory does not have it; removed: it alone has it"`
	Text      string `json:"text" doc:"all of it as one line"`
	Port      string `json:"port" doc:"where: site, room, rack, unit, name and port"`
	Inventory string `json:"inventory,omitempty" doc:"what the inventory has there"`
	Other     string `json:"other,omitempty" doc:"what the topology or the fabric has there"`
}
