package hcasim

import (
	"crypto/rsa"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

// Options say what card leaves the factory.
type Options struct {
	Identity Identity
	Firmware Firmware // that runs
	Security Security
	Ports    []Port
	Keys     []Key // the table of public keys that its firmware carries
	// Settings are those that the card knows, with their default values.
	Settings []Setting
	Traits   Traits
	// Seed makes challenges and handles differ from card to card.
	Seed uint64
	// Live, if there, says how a port is doing: its state, LIDs and P_Keys. GUIDs
	// and queue pair 0 are the card's to say. It is called outside of the card's
	// step.
	Live func(port int) Live
}

// Identity is burned in.
type Identity struct {
	DeviceID    uint16
	HWDevID     uint16 // DeviceID in recovery mode
	HWRevision  uint16
	BaseMAC     uint64
	PSID        string
	Name        string // part number
	Description string
	NodeGUID    ib.GUID
	BaseGUID    ib.GUID // of manufacture; 0: NodeGUID
	SystemGUID  ib.GUID
}

// Firmware is an image as far as it shows while it runs.
type Firmware struct {
	Major, Minor, SubMinor uint32
	SecurityVersion        uint32
	Debug, Dev             bool
}

// Security is how far the chip is closed.
type Security struct {
	LifeCycle  register.LifeCycle
	SecureBoot bool
	Secured    bool // takes signed firmware only
	SignedFW   bool
	EFUSE      uint32 // security version that is burned in
	Automatic  bool   // EFUSE follows the firmware; otherwise only after a command
}

// Port is an InfiniBand port.
type Port struct{ GUID ib.GUID }

// Live is how a port is doing.
type Live struct {
	State, Physical uint8 // as in PortInfo
	LID, SMLID      ib.LID
	CapabilityMask  uint32
	PKeys           []ib.PKey
}

// Key is a public key that the card trusts for some things.
type Key struct {
	UUID   nvconfig.UUID
	Public *rsa.PublicKey
	Signs  Purpose
}

// Purpose is a set of things that a key may sign.
type Purpose uint8

// Purposes.
const (
	SignsOEM Purpose = 1 << iota
	SignsMLNX
	SignsTokens
	SignsFirmware
)

// Setting is one that the card knows: an item of a class, once for each port,
// host or function.
type Setting struct {
	Family  nvconfig.Class // Global, Port, Host or HostFunction
	Index   uint32
	Default []byte
	Hidden  bool // from the host: only files reach it
	Burned  bool // at manufacturing: it cannot be written
}

// Traits are what the public sources do not say. The zero Traits are a card as
// the design hopes for, and as third-party tools were seen to expect.
type Traits struct {
	// NoCurrent and NoFactory: MNVDA cannot read these values.
	NoCurrent, NoFactory bool
	// KeepsSMI: the firmware goes on saying has_smi when SM_DISABLE is in force.
	KeepsSMI bool
	// LetsSMPs: SM_DISABLE is accepted, kept, shown, and does nothing.
	LetsSMPs bool
	// ReadsLocked: settings can be read while the card is locked.
	ReadsLocked bool
	// HonorsPrivileges: HOST_PRIV_* of the settings in force are obeyed.
	HonorsPrivileges bool
	// ForgetsOEM: taking all settings back takes also those that the host may not
	// write over.
	ForgetsOEM bool
	// IgnoresPriority: the host may write over settings of OEM and MLNX.
	IgnoresPriority bool
	// AcceptsUnsigned: files without a signature are taken if their digest is right.
	AcceptsUnsigned bool
	// AcceptsOldFiles: a file may have a lower version than the last one.
	AcceptsOldFiles bool
	// NoChallenges: MTCQ is not there.
	NoChallenges bool
	// IgnoresChallenges: the device that file_device_unique names in a file of settings, and the challenge that was drawn,
	// do not matter.
	IgnoresChallenges bool
	// RefusesBound and RefusesDevice: a file of settings is refused that has
	// file_device_unique, or that names devices instead of a board.
	RefusesBound, RefusesDevice bool
	// KeepsChallenge: an unanswered challenge stays until the next boot, even if a host ends it.
	KeepsChallenge bool
	// EnrollsKeys: items 412 to 414 hold a public key of the customer, and files
	// signed with it are taken from the next boot on.
	EnrollsKeys bool
	// Later: the machine of MCC does not end a step in the command that asks for
	// it, but in the next.
	Later bool
	// ForgetsLock: the lock does not survive a reset.
	ForgetsLock bool
}
