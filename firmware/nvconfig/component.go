package nvconfig

import "fmt"

// Indices of the items that make a file. Those of class Global say what the
// file is; the others are of class FileItem.
const (
	idMLNX   = 0x10E
	idVendor = 0x10F

	idApplicable     = 2
	idSignature      = 4
	idDebugToken     = 5
	idCSToken        = 7
	idBTCToken       = 8
	idMACList        = 9
	idSignature4096a = 0xB
	idSignature4096b = 0xC
	idRMCS           = 0x10
	idRMDT           = 0x11
	idDeviceUnique   = 18
	idFRC            = 0x13
	idDeviceID       = 20
	idSignature3072  = 21
)

// Component is what a file is to the adapter. Only one kind sets settings of the
// site; tokens open doors of the vendor.
type Component uint8

// Components.
const (
	OEMConfig Component = iota + 1
	MLNXConfig
	CSToken
	CRCSToken // a CSToken for named devices
	DebugToken
	CRDTToken // a DebugToken for named devices
	CommissioningToken
	RMCSToken
	RMDTToken
	FRCToken
)

var components = map[Component]struct {
	name   string
	number uint16 // in MCC, MCQS; 0: not published
}{
	OEMConfig:          {"OEM NVCONFIG", 4},
	MLNXConfig:         {"MLNX NVCONFIG", 5},
	CSToken:            {"CS token", 6},
	CRCSToken:          {"CRCS token", 0x10},
	DebugToken:         {"debug token", 7},
	CRDTToken:          {"CRDT token", 0x11},
	CommissioningToken: {"crypto to commissioning token", 0xD},
	RMCSToken:          {"RMCS token", 0xE},
	RMDTToken:          {"RMDT token", 0xF},
	FRCToken:           {"FRC token", 0},
}

func (c Component) String() string {
	if x, ok := components[c]; ok {
		return x.name
	}
	return fmt.Sprintf("component %d", uint8(c))
}

// Number is what the registers of the firmware update call the component; 0 is
// one whose number is not published.
func (c Component) Number() uint16 { return components[c].number }

// IsToken reports what opens a session of the vendor, and no setting.
func (c Component) IsToken() bool { return c != OEMConfig && c != MLNXConfig }

// componentOf says which component an item makes of its file.
func componentOf(a Address) (Component, bool) {
	switch a {
	case GlobalItem(idVendor):
		return OEMConfig, true
	case GlobalItem(idMLNX):
		return MLNXConfig, true
	case FileItemAddress(idCSToken):
		return CSToken, true
	case FileItemAddress(idDebugToken):
		return DebugToken, true
	case FileItemAddress(idBTCToken):
		return CommissioningToken, true
	case FileItemAddress(idRMCS):
		return RMCSToken, true
	case FileItemAddress(idRMDT):
		return RMDTToken, true
	case FileItemAddress(idFRC):
		return FRCToken, true
	}
	return 0, false
}

// isApplicability reports an item that says for which adapters a file is.
func isApplicability(a Address) bool {
	return a == FileItemAddress(idApplicable) || a == FileItemAddress(idDeviceID)
}

func isSignature(a Address) bool {
	switch a {
	case FileItemAddress(idSignature), FileItemAddress(idSignature4096a), FileItemAddress(idSignature4096b), FileItemAddress(idSignature3072):
		return true
	}
	return false
}

// remote reports the tokens before whose component item a list of addresses comes.
func (c Component) remote() bool { return c == RMCSToken || c == RMDTToken }
