package register

import "fmt"

// Component identifies what can be loaded into a device: firmware, settings,
// tokens.
type Component uint16

// Components.
const (
	BootImage         Component = 0x01
	OEMNVConfig       Component = 0x04
	MLNXNVConfig      Component = 0x05
	CSToken           Component = 0x06
	DebugToken        Component = 0x07
	CongestionControl Component = 0x0B // CC_ALGO
	LinkXImage        Component = 0x0C
	ToCommissioning   Component = 0x0D // CRYPTO_TO_COMMISSIONING
	RMCSToken         Component = 0x0E
	RMDTToken         Component = 0x0F
	CRCSToken         Component = 0x10
	CRDTToken         Component = 0x11
	DigitalCACert     Component = 0x15
	DigitalCACertGone Component = 0x17 // DIGITAL_CACERT_REMOVAL
	DPAComponent      Component = 0x1C
	MTDTToken         Component = 0x1E
)

// MCQS says what is at one index of the table of components, and how its
// update stands.
type MCQS struct {
	Index        uint16         `reg:"0x00.0,16"`
	Device       uint16         `reg:"0x00.16,12"`
	NotSupported bool           `reg:"0x00.30,1"`
	Last         bool           `reg:"0x00.31,1"` // there is no higher index
	Identifier   Component      `reg:"0x04.0,16"`
	State        ComponentState `reg:"0x08.0,4"`
	Status       uint8          `reg:"0x08.4,5"` // 0 not present, 1 present, 2 in use
}

// ID implements Layout.
func (MCQS) ID() ID { return IDMCQS }

// Size implements Sized.
func (MCQS) Size() int { return 0x10 }

// ComponentState is how far a component's update has come.
type ComponentState uint8

// Component states.
const (
	ComponentIdle               ComponentState = 0
	ComponentInProgress         ComponentState = 1
	ComponentApplied            ComponentState = 2
	ComponentActive             ComponentState = 3
	ComponentActivePendingReset ComponentState = 4
	ComponentFailed             ComponentState = 5
)

// PropertySet is a set of a component's properties that MCQI reports.
type PropertySet uint8

// Property sets.
const (
	Capabilities     PropertySet = 0
	Version          PropertySet = 1
	ActivationMethod PropertySet = 5
)

// MCQI reports properties of a component.
type MCQI struct {
	Index    uint16      `reg:"0x00.0,16"`
	Device   uint16      `reg:"0x00.16,12"`
	Pending  bool        `reg:"0x00.31,1"` // read_pending_component: of the component that waits for a reset
	Type     PropertySet `reg:"0x08.0,5"`  // info_type
	InfoSize uint32      `reg:"0x0C.0,32"` // of the whole set, in bytes
	Offset   uint32      `reg:"0x10.0,32"`
	DataSize uint16      `reg:"0x14.0,16"` // bytes wanted, or given
	Data     [124]byte   `reg:"0x18"`
}

// ID implements Layout.
func (MCQI) ID() ID { return IDMCQI }

// Size implements Sized.
func (MCQI) Size() int { return 0x94 }

// ComponentCapabilities is the property set Capabilities.
type ComponentCapabilities struct {
	Supported    uint32 `reg:"0x00.0,32"` // supported_info_bitmask
	Length       uint32 `reg:"0x04.0,32"` // component_size
	MaxLength    uint32 `reg:"0x08.0,32"` // max_component_size
	MaxWrite     uint16 `reg:"0x0C.0,16"` // mcda_max_write_size
	LogWordSize  uint8  `reg:"0x0C.28,4"`
	MatchGUIDMAC bool   `reg:"0x10.26,1"`
	MatchPSID    bool   `reg:"0x10.28,1"`
	MatchChipID  bool   `reg:"0x10.29,1"`
	SignedOnly   bool   `reg:"0x10.30,1"` // signed_updates_only
	CanRead      bool   `reg:"0x10.31,1"`
}

// Size implements Sized.
func (ComponentCapabilities) Size() int { return 0x14 }

// ComponentVersion is the property set Version.
type ComponentVersion struct {
	TextLength     uint8    `reg:"0x00.0,8"`
	BuildTimeValid bool     `reg:"0x00.29,1"`
	Version        uint32   `reg:"0x04.0,32"`
	BuildTime      uint64   `reg:"0x08.0,64"`
	UserTime       uint64   `reg:"0x10.0,64"`
	BuildTool      uint32   `reg:"0x18.0,32"`
	Text           [92]byte `reg:"0x20"` // text, ends with NUL
}

// Size implements Sized.
func (ComponentVersion) Size() int { return 0x7C }

// ComponentActivation is the property set ActivationMethod: the way in which a loaded component becomes the one in use.
type ComponentActivation struct {
	AllHosts     bool `reg:"0x00.0,1"` // all_hosts_sync
	Auto         bool `reg:"0x00.1,1"` // auto_activate
	FWReset      bool `reg:"0x00.2,1"` // pending_fw_reset
	ServerReboot bool `reg:"0x00.3,1"` // pending_server_reboot
	DCPowerCycle bool `reg:"0x00.4,1"`
	ACPowerCycle bool `reg:"0x00.5,1"`
}

// Size implements Sized.
func (ComponentActivation) Size() int { return 0x04 }

// Instruction is an instruction to MCC.
type Instruction uint8

// Instructions.
const (
	LockHandle      Instruction = 0x1
	ReleaseHandle   Instruction = 0x2
	UpdateComponent Instruction = 0x3
	VerifyComponent Instruction = 0x4
	Activate        Instruction = 0x6
	ReadComponent   Instruction = 0x7
	Cancel          Instruction = 0x8
	CheckHandle     Instruction = 0x9
	ForceRelease    Instruction = 0xA
	ReadPending     Instruction = 0xB
)

func (i Instruction) String() string {
	switch i {
	case LockHandle:
		return "LOCK_UPDATE_HANDLE"
	case ReleaseHandle:
		return "RELEASE_UPDATE_HANDLE"
	case UpdateComponent:
		return "UPDATE_COMPONENT"
	case VerifyComponent:
		return "VERIFY_COMPONENT"
	case Activate:
		return "ACTIVATE"
	case ReadComponent:
		return "READ_COMPONENT"
	case Cancel:
		return "CANCEL"
	case CheckHandle:
		return "CHECK_UPDATE_HANDLE"
	case ForceRelease:
		return "FORCE_HANDLE_RELEASE"
	case ReadPending:
		return "READ_PENDING_COMPONENT"
	}
	return fmt.Sprintf("instruction %d", uint8(i))
}

// ControlState is where the machine is that takes components.
type ControlState uint8

// Control states.
const (
	StateIdle       ControlState = 0
	StateLocked     ControlState = 1
	StateInitialize ControlState = 2
	StateDownload   ControlState = 3
	StateVerify     ControlState = 4
	StateApply      ControlState = 5
	StateActivate   ControlState = 6
	StateUpload     ControlState = 7
)

func (s ControlState) String() string {
	if int(s) < len(controlStates) {
		return controlStates[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

var controlStates = [...]string{"idle", "locked", "initialize", "download", "verify", "apply", "activate", "upload"}

// MCC controls the machine that takes components.
type MCC struct {
	Instruction Instruction  `reg:"0x00.0,8"`
	Elapsed     uint16       `reg:"0x00.16,12"` // time_elapsed_since_last_cmd, seconds
	Index       uint16       `reg:"0x04.0,16"`  // of MCQS
	Handle      uint32       `reg:"0x08.0,24"`  // update_handle
	State       ControlState `reg:"0x0C.0,4"`
	Error       MCCError     `reg:"0x0C.8,8"`
	Progress    uint8        `reg:"0x0C.16,7"` // per cent; 101: not reported
	OwnerHost   uint8        `reg:"0x0C.24,4"`
	OwnerType   uint8        `reg:"0x0C.28,4"`  // owner of the handle: 3 BMC, 4 command interface, 5 ICMD
	Length      uint32       `reg:"0x10.0,32"`  // component_size; 0: not reported
	DeviceType  uint8        `reg:"0x14.0,8"`   // 0: this device
	Device      uint16       `reg:"0x14.16,12"` // device_index
}

// ID implements Layout.
func (MCC) ID() ID { return IDMCC }

// Size implements Sized.
func (MCC) Size() int { return 0x20 }
