package register

// MFSV is the security version of the firmware, and the floor that is burned
// into the chip: its boot code refuses images of a lower one.
type MFSV struct {
	ProgramEnabled bool   `reg:"0x00.0,1"` // efuses_prog_en
	Stat           uint8  `reg:"0x00.1,2"` // 0 equal, 1 the fuses are lower, 2 pending
	Automatic      bool   `reg:"0x00.3,1"` // efuses_prog_method
	Index          uint8  `reg:"0x00.16,4"`
	Image          uint32 `reg:"0x04.0,32"` // img_sec_ver
	EFUSE          uint32 `reg:"0x08.0,32"` // efuses_sec_ver
}

// ID implements Layout.
func (MFSV) ID() ID { return IDMFSV }

// Size implements Sized.
func (MFSV) Size() int { return 0x30 }

// InfoType says which string MQIS asks for.
type InfoType uint8

// Strings.
const (
	InfoVPD         InfoType = 0
	InfoModelName   InfoType = 1
	InfoDescription InfoType = 2
	InfoImageVSD    InfoType = 3
	InfoDeviceVSD   InfoType = 4
	InfoROM         InfoType = 5
)

// MQIS is a piece of a string, 8 bytes at most.
type MQIS struct {
	Type   InfoType `reg:"0x00.0,8"`
	Total  uint16   `reg:"0x04.0,16"` // info_length: of the whole string, in bytes
	Length uint16   `reg:"0x08.0,16"` // read_length: bytes wanted, or given
	Offset uint16   `reg:"0x08.16,16"`
	Data   [8]byte  `reg:"0x10"`
}

// ID implements Layout.
func (MQIS) ID() ID { return IDMQIS }

// Size implements Sized.
func (MQIS) Size() int { return 0x18 }
