package register

// Settings. MNVDA and MNVDI have no layout of fixed size here: they are one
// item of package firmware/nvconfig, header and data. A read of MNVDA has a
// header with type, length and access mode, and as many bytes of data as it
// wants to have filled in.
const (
	ItemHeaderSize = 12
	MaxItemData    = 256 // that MNVDA carries
)

// MNVQC asks whether a device knows a setting.
type MNVQC struct {
	Type         uint32 `reg:"0x00.0,32"` // dword 1 of the item's header: class and index
	CanRead      bool   `reg:"0x04.0,1"`  // support_rd
	CanWrite     bool   `reg:"0x04.1,1"`  // support_wr
	Version      uint8  `reg:"0x04.4,4"`  // the highest of the item that is known
	HostIDIsSent bool   `reg:"0x04.9,1"`  // host_id_valid
}

// ID implements Layout.
func (MNVQC) ID() ID { return IDMNVQC }

// Size implements Sized.
func (MNVQC) Size() int { return 0x08 }

// MNVGC says which values of settings MNVDA can read.
type MNVGC struct {
	ReadsFactory bool `reg:"0x00.0,1"` // nvda_read_factory_settings
	ReadsCurrent bool `reg:"0x00.1,1"` // nvda_read_current_settings
	OtherHosts   bool `reg:"0x00.2,1"` // priv_nv_other_host
}

// ID implements Layout.
func (MNVGC) ID() ID { return IDMNVGC }

// Size implements Sized.
func (MNVGC) Size() int { return 0x10 }

// MNVIA takes back settings of the host, all of them.
type MNVIA struct {
	Target uint8 `reg:"0x00.0,3"` // 0: all
	Writer uint8 `reg:"0x00.4,5"` // writer_id
}

// ID implements Layout.
func (MNVIA) ID() ID { return IDMNVIA }

// Size implements Sized.
func (MNVIA) Size() int { return 0x08 }

// MNVGN walks through the settings that are stored: each answer holds an item
// and the pointer to the next. The first pointer is 0, as is the one after the
// last item.
type MNVGN struct {
	Pointer uint32    `reg:"0x00.0,32"`
	Header  [12]byte  `reg:"0x10"`
	Data    [128]byte `reg:"0x1C"`
}

// ID implements Layout.
func (MNVGN) ID() ID { return IDMNVGN }

// Size implements Sized.
func (MNVGN) Size() int { return 0x9C }

// Trigger is what starts a reset that was asked for; a set of bits.
type Trigger uint8

// Triggers.
const (
	LivePatch      Trigger = 1 << 0
	ImmediateReset Trigger = 1 << 1
	PCIeLink       Trigger = 1 << 3 // link toggle or hot reset
	WarmReboot     Trigger = 1 << 6 // PERST
)

// MFRL resets the firmware.
type MFRL struct {
	Trigger    Trigger `reg:"0x04.0,8"`
	Types      uint8   `reg:"0x04.8,8"`  // reset_type: those that there are, bit 0 the full chip
	State      uint8   `reg:"0x04.16,4"` // reset_state: 0 idle
	Method     uint8   `reg:"0x04.21,3"` // pci_reset_req_method
	Type       uint8   `reg:"0x04.24,3"` // rst_type_sel
	Sync       uint8   `reg:"0x04.29,2"` // pci_sync_for_fw_update_start
	RescanPCIe bool    `reg:"0x04.31,1"` // pci_rescan_required
}

// ID implements Layout.
func (MFRL) ID() ID { return IDMFRL }

// Size implements Sized.
func (MFRL) Size() int { return 0x08 }
