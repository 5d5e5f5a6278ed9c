package attest

import (
	"time"

	"portcullis/fabricsm/ib"
)

// Statement is what the agent says about its host. Its bytes are canonical
// JSON: the fields in the order below, no white space, GUIDs as 0x and 16
// lower-case digits, times in UTC, HCAs ascending by name and ports by number.
type Statement struct {
	Version     int       `json:"version"` // StatementVersion
	Host        string    `json:"host"`
	BootID      string    `json:"boot_id"` // Linux boot id, a UUID
	CollectedAt time.Time `json:"collected_at"`
	Agent       string    `json:"agent"` // version of the agent that collected it
	Board       Board     `json:"board"`
	HCAs        []HCA     `json:"hcas"`
}

// Board is the machine's own identity from SMBIOS. Absent values are empty.
type Board struct {
	Vendor      string `json:"vendor"`
	Name        string `json:"name"`
	Serial      string `json:"serial"`
	ProductUUID string `json:"product_uuid"`
}

// HCA is one adapter with at least one InfiniBand port.
type HCA struct {
	Name            string  `json:"name"` // device name, for example mlx5_0
	NodeGUID        ib.GUID `json:"node_guid"`
	SystemImageGUID ib.GUID `json:"system_image_guid"`
	PSID            string  `json:"psid"` // board_id of the driver
	Type            string  `json:"hca_type"`
	Firmware        string  `json:"firmware"` // running version
	Ports           []Port  `json:"ports"`
}

// Port is one port of an adapter. GUID is zero and left out on a port that is
// not InfiniBand.
type Port struct {
	Num       ib.PortNum `json:"port"`
	GUID      ib.GUID    `json:"guid,omitzero"`
	LinkLayer string     `json:"link_layer"` // LinkInfiniBand or LinkEthernet
}

// Link layers as the kernel spells them.
const (
	LinkInfiniBand = "InfiniBand"
	LinkEthernet   = "Ethernet"
)

// StatementVersion is the version this package writes and reads.
const StatementVersion = 1
