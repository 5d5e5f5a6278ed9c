package v1

import (
	"time"

	"portcullis/fabricsm/ib"
)

// MaxKeyLoan is the longest time for which a key is lent, in seconds.
const MaxKeyLoan = 24 * 60 * 60

// KeyLoan asks for the M_Key of one device to be lent to a tool.
type KeyLoan struct {
	GUID    ib.GUID `json:"guid" doc:"port GUID of the device; of a switch its node GUID"`
	Seconds int     `json:"seconds" minimum:"0" maximum:"86400" doc:"for so long; 0: it is given back, and changes now"`
	To      string  `json:"to,omitempty" maxLength:"48" doc:"which tool, or person, it is for"`
}

// LentKey is the M_Key of a device that is lent.
type LentKey struct {
	FabricKey
	Facts []string `json:"facts" doc:"lines of a file of facts: the record of this device alone, sealed; none: the key was given back"`
}

// KeyRetirement says that a device left permanently.
type KeyRetirement struct {
	GUID ib.GUID `json:"guid" doc:"port GUID of the device; of a switch its node GUID"`
}

// SAKeyLoan asks for the SA_Key in force, for a tool.
type SAKeyLoan struct {
	To string `json:"to,omitempty" maxLength:"48" doc:"which tool, or person, it is for"`
}

// KeyRehearsal is the proof that an escrow kit was opened and has every key of the service, as "portcullis keys rehearse --proof"
// makes it. It has no key.
type KeyRehearsal struct {
	Fabric  string    `json:"fabric" minLength:"1" maxLength:"64" doc:"name of the vault that the kit is of"`
	KitMade time.Time `json:"kit_made" doc:"when the kit was made"`
	Listed  time.Time `json:"listed" doc:"when the list was made that the kit was compared with: it was opened then or later"`
	Keys    int       `json:"keys" minimum:"1" doc:"how many keys the list has"`
	Devices int       `json:"devices" minimum:"0" doc:"how many devices have them"`
	List    string    `json:"list" minLength:"64" maxLength:"64" doc:"seal of the list"`
	Seal    string    `json:"seal" minLength:"64" maxLength:"64" doc:"which only a kit of this service can make once it is open"`
}

// KeyRehearsed is a rehearsal that was recorded.
type KeyRehearsed struct {
	KitMade  time.Time `json:"kit_made" doc:"when the kit was made"`
	Listed   time.Time `json:"listed" doc:"the kit was opened then or later"`
	Keys     int       `json:"keys" doc:"how many keys it was compared with"`
	Devices  int       `json:"devices" doc:"how many devices have them"`
	Recorded time.Time `json:"recorded"`
	By       string    `json:"by"`
}
