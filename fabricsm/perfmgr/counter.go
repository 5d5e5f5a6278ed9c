package perfmgr

import "portcullis/fabricsm/mad"

// Counter is a counter of a port.
type Counter uint8

// Counters, in the order in which PortCountersExtended has them. Data are words of four bytes; XmitWait counts ticks in which
// there was data to send and no credit.
const (
	XmitData Counter = iota
	RcvData
	XmitPkts
	RcvPkts
	UnicastXmitPkts
	UnicastRcvPkts
	MulticastXmitPkts
	MulticastRcvPkts
	SymbolErrors
	LinkErrorRecovery
	LinkDowned
	RcvErrors
	RcvRemotePhysicalErrors
	RcvSwitchRelayErrors
	XmitDiscards
	XmitConstraintErrors
	RcvConstraintErrors
	LocalLinkIntegrityErrors
	ExcessiveBufferOverrunErrors
	VL15Dropped
	XmitWait
	QP1Dropped

	// NumCounters is how many counters there are.
	NumCounters = iota
)

// Values has a value for each counter.
type Values [NumCounters]uint64

// Set is a set of counters.
type Set uint32

func setOf(counters ...Counter) (s Set) {
	for _, c := range counters {
		s |= 1 << c
	}
	return s
}

// Has reports whether a counter is in the set.
func (s Set) Has(c Counter) bool { return s>>c&1 != 0 }

var (
	traffic = setOf(XmitData, RcvData, XmitPkts, RcvPkts)
	kinds   = setOf(UnicastXmitPkts, UnicastRcvPkts, MulticastXmitPkts, MulticastRcvPkts)
	errors  = setOf(SymbolErrors, LinkErrorRecovery, LinkDowned, RcvErrors, RcvRemotePhysicalErrors, RcvSwitchRelayErrors, XmitDiscards,
		XmitConstraintErrors, RcvConstraintErrors, LocalLinkIntegrityErrors, ExcessiveBufferOverrunErrors, VL15Dropped)
)

// widths are the bits that PortCounters has for each counter, 0: none.
var widths = [NumCounters]uint8{
	XmitData: 32, RcvData: 32, XmitPkts: 32, RcvPkts: 32, SymbolErrors: 16, LinkErrorRecovery: 8, LinkDowned: 8, RcvErrors: 16,
	RcvRemotePhysicalErrors: 16, RcvSwitchRelayErrors: 16, XmitDiscards: 16, XmitConstraintErrors: 8, RcvConstraintErrors: 8,
	LocalLinkIntegrityErrors: 4, ExcessiveBufferOverrunErrors: 4, VL15Dropped: 16, XmitWait: 32, QP1Dropped: 16,
}

// offer is what an agent has, as its ClassPortInfo says.
type offer struct {
	long  Set // counters of PortCountersExtended; 0: it is not there
	short Set // counters that are read from PortCounters; 0: nothing is missing in the other
}

func offerOf(info *mad.ClassPortInfo) (o offer) {
	switch {
	case info.CapabilityMask&mad.PerfExtendedWidth != 0:
		o.long = traffic | kinds
	case info.CapabilityMask&mad.PerfExtendedWidthNoIETF != 0:
		o.long = traffic
	}
	more := errors
	if info.CapabilityMask&mad.PerfXmitWait != 0 {
		more |= setOf(XmitWait)
	}
	if info.CapabilityMask&mad.PerfQP1Dropped != 0 {
		more |= setOf(QP1Dropped)
	}
	switch {
	case o.long == 0:
		o.short = traffic | more
	case info.CapabilityMask2&mad.PerfAdditionalExtended != 0:
		o.long |= errors | setOf(XmitWait, QP1Dropped)
	default:
		o.short = more
	}
	return o
}

// shortened returns what is read of an agent that turns out not to have PortCountersExtended.
func (o offer) shortened() offer {
	return offer{short: traffic | errors | o.short | o.long&setOf(XmitWait, QP1Dropped)}
}

// requests returns how many requests a port takes.
func (o offer) requests() int {
	if o.long != 0 && o.short != 0 {
		return 2
	}
	return 1
}

// longValues returns the values of an answer of 64 bits.
func longValues(c *mad.PortCountersExtended) Values {
	return Values{
		XmitData: c.PortXmitData, RcvData: c.PortRcvData, XmitPkts: c.PortXmitPkts, RcvPkts: c.PortRcvPkts,
		UnicastXmitPkts: c.PortUnicastXmitPkts, UnicastRcvPkts: c.PortUnicastRcvPkts,
		MulticastXmitPkts: c.PortMulticastXmitPkts, MulticastRcvPkts: c.PortMulticastRcvPkts,
		SymbolErrors: c.SymbolErrorCounter, LinkErrorRecovery: c.LinkErrorRecoveryCounter, LinkDowned: c.LinkDownedCounter,
		RcvErrors: c.PortRcvErrors, RcvRemotePhysicalErrors: c.PortRcvRemotePhysicalErrors, RcvSwitchRelayErrors: c.PortRcvSwitchRelayErrors,
		XmitDiscards: c.PortXmitDiscards, XmitConstraintErrors: c.PortXmitConstraintErrors, RcvConstraintErrors: c.PortRcvConstraintErrors,
		LocalLinkIntegrityErrors: c.LocalLinkIntegrityErrors, ExcessiveBufferOverrunErrors: c.ExcessiveBufferOverrunErrors,
		VL15Dropped: c.VL15Dropped, XmitWait: c.PortXmitWait, QP1Dropped: c.QP1Dropped,
	}
}

// shortValues returns the values of the other answer.
func shortValues(c *mad.PortCounters) Values {
	return Values{
		XmitData: uint64(c.PortXmitData), RcvData: uint64(c.PortRcvData), XmitPkts: uint64(c.PortXmitPkts), RcvPkts: uint64(c.PortRcvPkts),
		SymbolErrors: uint64(c.SymbolErrorCounter), LinkErrorRecovery: uint64(c.LinkErrorRecoveryCounter), LinkDowned: uint64(c.LinkDownedCounter),
		RcvErrors: uint64(c.PortRcvErrors), RcvRemotePhysicalErrors: uint64(c.PortRcvRemotePhysicalErrors),
		RcvSwitchRelayErrors: uint64(c.PortRcvSwitchRelayErrors), XmitDiscards: uint64(c.PortXmitDiscards),
		XmitConstraintErrors: uint64(c.PortXmitConstraintErrors), RcvConstraintErrors: uint64(c.PortRcvConstraintErrors),
		LocalLinkIntegrityErrors: uint64(c.LocalLinkIntegrityErrors), ExcessiveBufferOverrunErrors: uint64(c.ExcessiveBufferOverrunErrors),
		VL15Dropped: uint64(c.VL15Dropped), XmitWait: uint64(c.PortXmitWait), QP1Dropped: uint64(c.QP1Dropped),
	}
}
