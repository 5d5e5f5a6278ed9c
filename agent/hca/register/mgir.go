package register

// MGIR is the identity of a device, and the firmware's report about itself.
type MGIR struct {
	Hardware HardwareInfo `reg:"0x00"`
	Firmware FirmwareInfo `reg:"0x20"`
	Software SoftwareInfo `reg:"0x60"`
	Branch   [28]byte     `reg:"0x80"` // dev_branch_tag, text
}

// ID implements Layout.
func (MGIR) ID() ID { return IDMGIR }

// Size implements Sized.
func (MGIR) Size() int { return 0xA0 }

// HardwareInfo is burned in.
type HardwareInfo struct {
	DeviceID   uint16 `reg:"0x00.0,16"`  // of PCI
	HWRevision uint16 `reg:"0x00.16,16"` // device_hw_revision
	Ports      uint16 `reg:"0x04.16,12"`
	HWDevID    uint16 `reg:"0x08.0,16"` // what DeviceID is in recovery mode
	BaseMAC    uint64 `reg:"0x10.0,48"` // of manufacturing; 0: not known
	ChipType   uint8  `reg:"0x10.24,4"` // 0 chip, 1 emulation, 2 chip simulator, 3 SimX
	Uptime     uint32 `reg:"0x1C.0,32"` // seconds since the last reset
}

// Recovery reports a device that has not booted its firmware ("live fish").
func (h HardwareInfo) Recovery() bool { return h.DeviceID == h.HWDevID }

// FirmwareInfo is of the firmware that runs.
type FirmwareInfo struct {
	OldSubMinor  uint8     `reg:"0x00.0,8"`
	OldMinor     uint8     `reg:"0x00.8,8"`
	OldMajor     uint8     `reg:"0x00.16,8"`
	Secured      bool      `reg:"0x00.24,1"` // takes signed firmware only
	SignedFW     bool      `reg:"0x00.25,1"`
	Debug        bool      `reg:"0x00.26,1"`
	Dev          bool      `reg:"0x00.27,1"`
	StringTLV    bool      `reg:"0x00.28,1"`
	DevSC        bool      `reg:"0x00.30,1"`
	BuildID      uint32    `reg:"0x04.0,32"`
	Year         uint16    `reg:"0x08.0,16"` // BCD, as are the next three
	Day          uint8     `reg:"0x08.16,8"`
	Month        uint8     `reg:"0x08.24,8"`
	Hour         uint16    `reg:"0x0C.0,16"`
	PSID         [16]byte  `reg:"0x10"` // text, padded with NUL
	INIVersion   uint32    `reg:"0x20.0,32"`
	Major        uint32    `reg:"0x24.0,32"`
	Minor        uint32    `reg:"0x28.0,32"`
	SubMinor     uint32    `reg:"0x2C.0,32"`
	ISFUMajor    uint16    `reg:"0x30.0,16"`
	LifeCycleLow LifeCycle `reg:"0x34.0,2"`
	SecureBoot   bool      `reg:"0x34.2,1"`
	Encryption   bool      `reg:"0x34.3,1"`
	LifeCycleTop uint8     `reg:"0x34.4,3"` // of newer chips
	DevState     bool      `reg:"0x34.11,1"`
}

// Size implements Sized.
func (FirmwareInfo) Size() int { return 0x40 }

// LifeCycle is both parts of the life cycle as one number.
func (f FirmwareInfo) LifeCycle() LifeCycle { return f.LifeCycleLow | LifeCycle(f.LifeCycleTop)<<2 }

// LifeCycle is the life-cycle state of a chip: how far it has been closed. The meaning of a number depends on the format of
// the chip's images.
type LifeCycle uint8

// Life cycles of FS4 devices.
const (
	Production   LifeCycle = 0
	GASecured    LifeCycle = 1
	GANonSecured LifeCycle = 2
	RMA          LifeCycle = 3
)

// Life cycles of FS5 devices.
const (
	FS5Blank           LifeCycle = 0
	FS5PreProduction   LifeCycle = 4
	FS5Production      LifeCycle = 6
	FS5FailureAnalysis LifeCycle = 7
)

// SoftwareInfo is the oldest driver that goes with the firmware.
type SoftwareInfo struct {
	SubMinor uint8 `reg:"0x00.0,8"`
	Minor    uint8 `reg:"0x00.8,8"`
	Major    uint8 `reg:"0x00.16,8"`
}

// Text is the text in a field of fixed size: the bytes before the first NUL. It is hostile input and may hold any bytes but
// NUL.
func Text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
