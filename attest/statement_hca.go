package attest

import "portcullis/fabricsm/ib"

// HCA is one adapter with at least one InfiniBand port.
type HCA struct {
	Name            string   `json:"name"`        // device name, for example mlx5_0
	PCI             string   `json:"pci_address"` // 0000:17:00.0
	Serial          string   `json:"serial"`
	PartNumber      string   `json:"part_number"`
	DeviceID        uint16   `json:"device_id"`   // PCI device id; 0 unknown
	HardwareID      uint16   `json:"hardware_id"` // of MGIR; 0 unknown
	NodeGUID        ib.GUID  `json:"node_guid"`
	SystemImageGUID ib.GUID  `json:"system_image_guid"`
	BaseGUID        ib.GUID  `json:"base_guid"`      // of manufacture; 0 unknown
	BaseMAC         string   `json:"base_mac"`       // of manufacture, 12 hex digits
	AlternateGUID   Answer   `json:"alternate_guid"` // a host-set GUID replaces that of manufacture
	PSID            string   `json:"psid"`           // board_id of the driver
	Type            string   `json:"hca_type"`
	Firmware        Firmware `json:"firmware"`
	Lock            Lock     `json:"lock"`
	Tokens          []Token  `json:"tokens"` // of every kind the device has, ascending by kind; null unknown
	Ports           []Port   `json:"ports"`
	Registers       string   `json:"registers_sha256"` // of the registers as read
	SPDM            string   `json:"spdm_sha256"`      // of a measurement over the BMC
	Sources         []Source `json:"sources"`          // ascending by fact
	Unread          []Unread `json:"unread"`           // ascending by fact
}

// Port is one port of an adapter. GUID is zero and left out on a port that is
// not InfiniBand. HasSMI and Firewall are left out when unknown.
type Port struct {
	Num       ib.PortNum `json:"port"`
	GUID      ib.GUID    `json:"guid,omitzero"`
	LinkLayer string     `json:"link_layer"`         // LinkInfiniBand or LinkEthernet
	HasSMI    Answer     `json:"has_smi,omitzero"`   // of QUERY_HCA_VPORT_CONTEXT
	Firewall  Firewall   `json:"smp_probe,omitzero"` // what became of an SMP sent by the host
}

// Link layers as the kernel spells them.
const (
	LinkInfiniBand = "InfiniBand"
	LinkEthernet   = "Ethernet"
)

// Firmware is what an adapter says that it runs.
type Firmware struct {
	Running         string     `json:"running"`          // version
	Pending         string     `json:"pending"`          // version after the next reset; that of Running when none waits
	ReleaseDate     string     `json:"release_date"`     // YYYY-MM-DD
	LifeCycle       LifeCycle  `json:"life_cycle"`       // of the device
	SecureBoot      Answer     `json:"secure_boot"`      // enabled
	Recovery        Answer     `json:"recovery"`         // runs from ROM because its flash cannot be read
	Attributes      []string   `json:"attributes"`       // security attribute words in the vendor's order; null unknown
	SecurityVersion *uint32    `json:"security_version"` // of the image; null unknown
	RollbackFloor   *uint32    `json:"rollback_floor"`   // security version in the fuses; null unknown
	Reference       *Reference `json:"reference"`        // image of the operator that is the same; null: none
	Assurance       Assurance  `json:"assurance"`
}

// Reference is an image file that was verified under a key pinned by the site.
type Reference struct {
	SHA256 string `json:"sha256"` // masked digest, hex
	KeyID  string `json:"key"`    // UUID of the key that signed it
}

// Lock is how the settings of an adapter are protected from root on its host.
type Lock struct {
	Method LockMethod `json:"method"`
	MLOCK  MLOCK      `json:"mlock"`
	Epoch  uint64     `json:"epoch"` // of the MLOCK key that the service provided; 0: none
	File   *LockFile  `json:"file"`  // applied; null: none
	Items  []Item     `json:"items"` // read back; null unknown
}

// LockFile is a signed NVCONFIG file.
type LockFile struct {
	SHA256 string `json:"sha256"`
	KeyID  string `json:"key"` // UUID
}

// Item is one setting as the device holds it. Port, host and function are left
// out when zero. Data is in hex, as on the wire; empty: unknown, or the device
// has none.
type Item struct {
	Class     uint8    `json:"class"`
	Index     uint32   `json:"index"`
	Port      uint8    `json:"port,omitzero"`
	Host      uint8    `json:"host,omitzero"`
	Function  uint8    `json:"function,omitzero"`
	Supported Answer   `json:"supported"`
	Priority  Priority `json:"priority"`
	Override  Answer   `json:"ovr_en"` // a later priority may overwrite it
	Current   string   `json:"current"`
	Next      string   `json:"next"` // after the next reset
}

// Token says whether a session of one of the vendor's tokens is open.
type Token struct {
	Kind    string `json:"kind"` // for example rmdt
	Session Answer `json:"session"`
}

// Source says where a fact was read.
type Source struct {
	Fact string `json:"fact"`
	From string `json:"from"` // sysfs, devlink, fwctl, or the name of a tool
}

// Unread is a fact that could not be read, and why.
type Unread struct {
	Fact   string `json:"fact"`
	Reason string `json:"reason"`
}
