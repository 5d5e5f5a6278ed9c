package attest

import "time"

// Statement is the agent's report about its host. Its bytes are canonical JSON: the fields in the order below, none left
// out unless said so, no white space, GUIDs as 0x and 16 lower-case digits, times in UTC, HCAs ascending by name, ports by
// number, items by type, other lists by name. A fact that the agent could not find out is recorded as unknown: empty text,
// null, or the word "unknown". The policy decides which unknown facts it accepts.
type Statement struct {
	Version     int       `json:"version"` // StatementVersion
	Host        string    `json:"host"`
	BootID      string    `json:"boot_id"` // Linux boot id, a UUID
	CollectedAt time.Time `json:"collected_at"`
	Agent       string    `json:"agent"`     // version of the agent that collected it
	Image       string    `json:"image"`     // identity of the image that was booted
	EventLog    string    `json:"event_log"` // hex SHA-256 of the firmware's event log; "" none
	Tools       []Tool    `json:"tools"`     // run to collect it, ascending by name
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

// Tool is a third-party program that the agent ran.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// StatementVersion is the version this package writes and reads.
const StatementVersion = 2
