package mad

// GeneralInfoCapabilitiesMod is the modifier of GeneralInfo (attribute 0xFF17)
// that selects the capability mask.
const GeneralInfoCapabilitiesMod = 0x00000004

// Capability is the number of a bit of GeneralInfoCapabilities.
type Capability uint8

// Capabilities with a public meaning.
const (
	CapCongestionControl Capability = 44 // class 0x21
	CapRouterLID         Capability = 48
	CapFastRecovery      Capability = 52
	CapCreditWatchdog    Capability = 53
	CapFabricManagerInfo Capability = 68
)

// GeneralInfoCapabilities is what NVIDIA's devices say they can do (SMP
// attribute 0xFF17 with modifier 4): capability n is bit n%32, counted from the
// lowest, of word n/32.
type GeneralInfoCapabilities struct {
	CapabilityMask [4]uint32 `mad:"0,32,hex"`
}

// Has reports whether the capability is set.
func (g *GeneralInfoCapabilities) Has(c Capability) bool {
	return int(c/32) < len(g.CapabilityMask) && g.CapabilityMask[c/32]>>(c%32)&1 != 0
}

// Set adds a capability. Those above 127 do not exist and panic.
func (g *GeneralInfoCapabilities) Set(c Capability) { g.CapabilityMask[c/32] |= 1 << (c % 32) }
