package v1

import "portcullis/fabricsm/ib"

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
