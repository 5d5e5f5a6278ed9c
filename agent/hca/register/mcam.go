package register

// MCAM says which management registers a device has, 128 at a time.
type MCAM struct {
	Group        uint8     `reg:"0x00.0,8"`  // which 128 registers
	FeatureGroup uint8     `reg:"0x00.16,8"` // 0: enhanced features
	Registers    [4]uint32 `reg:"0x08"`      // bit 0 is the least of the last dword
	Features     [4]uint32 `reg:"0x28"`      // likewise
}

// ID implements Layout.
func (MCAM) ID() ID { return IDMCAM }

// Size implements Sized.
func (MCAM) Size() int { return 0x48 }

const (
	firstManaged   = ID(0x9000)
	registersGroup = 128
)

// GroupOf is the group that a register is in; false if MCAM does not cover it.
func GroupOf(id ID) (uint8, bool) {
	if id < firstManaged || id >= firstManaged+4*registersGroup {
		return 0, false
	}
	return uint8((id - firstManaged) / registersGroup), true
}

// Has reports that the device says it has a register. Registers of other
// groups than m's are not had.
func (m MCAM) Has(id ID) bool {
	word, bit, ok := m.place(id)
	return ok && m.Registers[word]>>bit&1 == 1
}

// Set says that the device has a register. Those of other groups are left out.
func (m *MCAM) Set(id ID) {
	if word, bit, ok := m.place(id); ok {
		m.Registers[word] |= 1 << bit
	}
}

func (m MCAM) place(id ID) (word, bit int, ok bool) {
	group, ok := GroupOf(id)
	if !ok || group != m.Group {
		return 0, 0, false
	}
	i := int(id-firstManaged) % registersGroup
	return 3 - i/32, i % 32, true
}

// Feature numbers a feature of group 0.
type Feature int

// Features that say which tokens a device takes.
const (
	FeatureCSToken         Feature = 14
	FeatureDebugToken      Feature = 15
	FeatureChallengeTokens Feature = 49 // CRCS and CRDT
)

// HasFeature reports that the device says it has a feature.
func (m MCAM) HasFeature(f Feature) bool {
	return m.FeatureGroup == 0 && f >= 0 && f < 128 && m.Features[3-f/32]>>(f%32)&1 == 1
}

// SetFeature says that the device has a feature, 0 to 127.
func (m *MCAM) SetFeature(f Feature) { m.Features[3-f/32] |= 1 << (f % 32) }
