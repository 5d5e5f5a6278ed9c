package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
)

// Config is what a Core is told once. The zero value of a field means its
// default.
type Config struct {
	// PortGUID is the port this SM is attached to. Required.
	PortGUID ib.GUID

	Prefix   ib.Prefix // subnet prefix; default ib.DefaultPrefix
	Priority uint8     // 0 to 15, the highest is master; default 0

	// SMKey is what other subnet managers must show to be believed. Without one
	// none is ever believed: they are reported, and this SM never yields.
	SMKey ib.SMKey

	// Enforcement says what counts as an enforced partition; default Verified.
	Enforcement Enforcement

	// IntentWait is how long P_Key tables are left as they were found while
	// no intent has come. Without it a restart would take the tenants' keys
	// away and give them back. Zero programs at once, as if an empty intent
	// had come: nobody is in a tenant partition.
	IntentWait time.Duration

	Window    int // requests out at once; default 64. Small: slow. Large: overruns VL15 buffers.
	PerTarget int // requests out at once to one node; default 16
	Tries     int // quick tries of a request before its node counts as silent; default 3

	// Late is the age at which an unanswered request no longer counts against
	// the window and no longer holds up the others; default 25 ms.
	Late time.Duration
	// RetryMin and RetryMax bound the doubling pause between attempts to reach
	// a silent node or the far end of a silent link; defaults 1 s and 60 s.
	RetryMin, RetryMax time.Duration
	// TrapHold is the shortest time between two verifications that one
	// source's traps cause; default 10 ms.
	TrapHold time.Duration
	// AuditPeriod is the time in which the background audit re-reads every
	// port once; default 10 min, negative: no audit.
	AuditPeriod time.Duration
	// LIDPeriod is the time in which PortInfo of every adapter is read once, as far as that
	// takes no more than 500 requests a second; default 2 s, negative: never. Without an
	// audit there is none of it by default.
	LIDPeriod time.Duration
	// ViewEvery is the shortest time between two views of an unsettled fabric;
	// default 200 ms. A settled one is shown at once.
	ViewEvery time.Duration
	// AnswersEarly has the forwarding tables of a fabric that had a master before read after the ports are configured, not
	// before, and blocks of P_Key tables in which nothing is wanted: most requests of a takeover are for these. View.Early has
	// routes meanwhile. No block is written before it was read.
	AnswersEarly bool
	// Election is about other subnet managers.
	Election ElectionConfig
	// Siblings are the ports of other instances that share the facts of this one.
	Siblings []Sibling

	// LMC gives every CA and router port 2^LMC LIDs, over each of which other hosts
	// reach it another way as far as there is one; 0 to 7, default 0. Switches
	// have one LID.
	LMC ib.LMC

	// Engines are tried in this order until one gives tables that the checker
	// accepts; default minhop, then updn, which avoids the credit loops that
	// minhop can have. That one was passed over is told.
	Engines []route.Engine

	LIDs   LIDConfig
	Ports  portpolicy.Config
	SLtoVL SLtoVLMode // default SLtoVLAuto
	QoS    qos.Options
	Health health.Config
	Growth GrowthConfig
	MKey   mkeys.Config
	// Topology is what the fabric is compared with.
	Topology TopologyConfig

	ClassKeys  ClassKeysConfig // see package keymgr
	Counters   CountersConfig  // see package counterwatch
	Violations violation.Config

	Controls controls.Set `json:"-"` // Strict in every service
}

// Enforcement says what counts as proof that a switch port enforces P_Keys.
type Enforcement uint8

const (
	// Verified: the P_Key table and the enforcement bits were both read back.
	// A switch that does not show the bits gets no tenant P_Key on that port.
	Verified Enforcement = iota
	// Accepted: the table was read back and the Set of the bits was not
	// refused. For simulators that forget the bits; it proves less.
	Accepted
)

func (e Enforcement) String() string {
	if e == Accepted {
		return "accepted"
	}
	return "verified"
}

// SLtoVLMode says which SL-to-VL tables are programmed.
type SLtoVLMode uint8

const (
	// SLtoVLAuto: none while forwarding uses one lane and quality of service is
	// off; else all. Switches that take one write for all pairs of ports get
	// that; others cost a request for each pair.
	SLtoVLAuto SLtoVLMode = iota
	// SLtoVLOff leaves all tables alone. Routes that need several lanes are
	// refused.
	SLtoVLOff
)

// DefaultConfig gives the default of every field that has one.
func DefaultConfig() Config { return Config{}.withDefaults() }

func (c Config) withDefaults() Config {
	def(&c.Prefix, ib.DefaultPrefix)
	def(&c.Window, 64)
	def(&c.PerTarget, 16)
	def(&c.Tries, 3)
	def(&c.Late, 25*time.Millisecond)
	def(&c.RetryMin, time.Second)
	def(&c.RetryMax, time.Minute)
	def(&c.TrapHold, 10*time.Millisecond)
	def(&c.AuditPeriod, 10*time.Minute)
	if c.AuditPeriod > 0 {
		def(&c.LIDPeriod, 2*time.Second)
	}
	def(&c.ViewEvery, 200*time.Millisecond)
	c.Election.SetDefaults(c.Priority)
	c.Health.SetDefaults()
	c.Growth = c.Growth.WithDefaults()
	c.ClassKeys.SetDefaults()
	c.Violations, c.Controls = c.Violations.WithDefaults(), c.Controls.WithDefaults()
	if c.MKey.IsOn() {
		def(&c.MKey.Protection, 2)
		if alive := c.MKey.KeepAlive(); alive > 0 && (c.AuditPeriod < 0 || c.AuditPeriod > alive) {
			c.AuditPeriod = alive
		}
		if alive := c.MKey.KeepAlive(); alive > 0 && c.Controls.Keys.KeepsLeasesFirst() { // what is silent is asked again while its lease runs
			c.RetryMax = max(min(c.RetryMax, alive/2), c.RetryMin)
		}
	}
	c.Ports.SetDefaults()
	if c.Engines == nil {
		c.Engines = []route.Engine{minhop.Engine{}, updn.Engine{}}
	}
	c.Window = min(c.Window, work.MaxOut)
	return c
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
