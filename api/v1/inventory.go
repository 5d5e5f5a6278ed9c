package v1

import "time"

// ImportReport says what an inventory import did, or would do in a dry run.
// An import is all or nothing, and it never removes a host: hosts that the
// files leave out are listed, not touched.
type ImportReport struct {
	DryRun    bool              `json:"dry_run"`
	Revision  int64             `json:"revision,omitzero"` // store revision of the import; 0 in a dry run and when nothing changed
	Added     []string          `json:"added"`             // host ids, sorted
	Changed   []HostChange      `json:"changed"`           // sorted by host
	Unchanged int               `json:"unchanged"`         // hosts in the files that already are so
	NotInFile []string          `json:"not_in_file"`       // hosts in the store that no file names, left alone; sorted
	Warnings  []string          `json:"warnings" nullable:"false" doc:"what was taken and may be a mistake: each with its place, the object, and what to do; at most 100, the last of which says how many more there are"`
	Equipment []EquipmentChange `json:"equipment" doc:"what it does to sites, racks, switches, adapters in stock and cables between switches"`
	LeftOut   int               `json:"left_out,omitempty" doc:"cables of an observed fabric to ports that no host of the inventory has"`
	Staged    []Repair          `json:"staged" doc:"rows that were not taken: they wait for a second person"`
}

// RepairTicket names the repair for which known hosts get another EK in inventory.
type RepairTicket struct {
	Ticket string `json:"ticket,omitempty" maxLength:"64" doc:"of the repair: letters, digits, '.', '_' and '-'"`
	Reason string `json:"reason,omitempty" maxLength:"256" doc:"for those who confirm, and for the audit log"`
}

// Repair is a row of inventory that waits for a second person: a host of which evidence
// was accepted before gets another EK, or an EK that was replaced comes back.
type Repair struct {
	Host     string    `json:"host"`
	Ticket   string    `json:"ticket"`
	Reason   string    `json:"reason"`
	By       string    `json:"by" doc:"who staged it, and may not confirm it"`
	Staged   time.Time `json:"staged"`
	Expires  time.Time `json:"expires" doc:"until when it can be confirmed"`
	Expired  bool      `json:"expired,omitempty"`
	EKWas    string    `json:"ek_was,omitempty" doc:"EK that is denied once it is confirmed"`
	EK       string    `json:"ek,omitempty"`
	Fields   []string  `json:"fields" doc:"all that changes, one sentence each"`
	Digest   string    `json:"digest" doc:"of all this, for who confirms it"`
	Denied   bool      `json:"denied,omitempty" doc:"the new EK is on the deny list, and comes off it"`
	DeniedBy string    `json:"denied_by,omitempty" doc:"ticket with which it was denied"`
}

// RepairConfirm puts a staged row into force.
type RepairConfirm struct {
	Reason string `json:"reason,omitempty" maxLength:"256" doc:"why, for the audit log"`
	Digest string `json:"digest" minLength:"12" maxLength:"64" doc:"of what was looked at, or its first 12 digits"`
}

// RepairCancel ends a staged row.
type RepairCancel struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
}

// DeniedEK is an EK that a host had, and that was replaced.
type DeniedEK struct {
	EK     string    `json:"ek" doc:"SHA-256 of its SubjectPublicKeyInfo, hex"`
	Time   time.Time `json:"time"`
	Host   string    `json:"host" doc:"that had it"`
	Ticket string    `json:"ticket"`
	By     string    `json:"by" doc:"who confirmed that it was replaced"`
}

// HostRemoval says why a host, or other equipment, leaves inventory.
type HostRemoval struct {
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
}

// HostChange is one host whose record an import changes.
type HostChange struct {
	Host   string   `json:"host"`
	Where  string   `json:"where,omitempty" doc:"site, room, rack and unit of the host, in words"`
	Fields []string `json:"fields"` // "ek_sha256: was X, now Y", one sentence each
}

// EquipmentChange is what an import does to an object that is no host.
type EquipmentChange struct {
	Kind   string   `json:"kind" enum:"site,rack,switch,adapter,cable"`
	What   string   `json:"what" enum:"added,changed,removed"`
	Object string   `json:"object" doc:"its name, and site, rack and unit in words; of a cable both ends"`
	Fields []string `json:"fields,omitempty" doc:"what changes, one sentence each"`
}
