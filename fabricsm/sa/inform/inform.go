package inform

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// Config is the fixed configuration of a Registry.
type Config struct {
	Prefix ib.Prefix // subnet prefix; default ib.DefaultPrefix

	// MaxOnWire is how many reports are under way: option max_sa_reports_on_wire;
	// default 512. Ports that did not answer the last get a quarter of these.
	MaxOnWire int
	// MaxQueued is how many reports wait: option max_sa_reports_queued; default 65536. Those for one port are at most a
	// sixteenth of the free places.
	MaxQueued  int
	PerPort    int // reports under way to one port; default 4
	PerQueue   int // reports that wait for one subscription; default 256
	MaxRecords int // subscriptions of all together; default 524288

	// Timeout is how long the registry waits for an answer to a report. A subscriber may request more, up to twice this;
	// default 1 s. Tries is how often a report is sent; default 4.
	Timeout time.Duration
	Tries   int
	// DropOnFail ends a subscription whose report is not answered: option
	// drop_subscr_on_report_fail.
	DropOnFail bool
	// Linger is how long subscriptions stay when their port is gone; default 5 min.
	// Negative, and option drop_event_subscriptions: not at all.
	Linger time.Duration

	// Limits are those of all of subnet administration; Trust has their values. Without Limits there are none.
	Limits *trust.Limits
	Trust  trust.Options
}

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, ib.DefaultPrefix)
	c.MaxOnWire = cmp.Or(c.MaxOnWire, 512)
	c.MaxQueued = cmp.Or(c.MaxQueued, 1<<16)
	c.PerPort = cmp.Or(c.PerPort, 4)
	c.PerQueue = cmp.Or(c.PerQueue, 256)
	c.MaxRecords = cmp.Or(c.MaxRecords, 1<<19)
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	c.Tries = cmp.Or(c.Tries, 4)
	c.Linger = cmp.Or(c.Linger, 5*time.Minute)
	if c.Limits == nil {
		c.Limits = trust.NewLimits()
	}
	return c
}

// Address is how to reach a subscriber: how its request came.
type Address struct {
	LID       ib.LID
	QP        uint32
	PKeyIndex uint16 // of our P_Key
	SL        ib.SL
	PathBits  uint8 // of our LID

	GRH          bool // the rest is of one
	GIDIndex     uint8
	HopLimit     uint8
	TrafficClass uint8
	FlowLabel    uint32
	GID          ib.GID
}

// Subscription is one. It is immutable.
type Subscription struct {
	Port    ib.GUID // port GUID of the subscriber
	As      ib.GUID // or the alias of it that subscribed
	Enum    uint16  // distinguishes the subscriptions of a GUID
	Info    mad.InformInfo
	Address Address
	Trusted bool   // it showed the SA_Key when it subscribed, and that one is taken still
	Epoch   uint64 // of that key
}

// What describes in words which notices the subscription is for.
func (s *Subscription) What() string { return noticesOf(&s.Info) }

// About describes in words whose notices the subscription is for.
func (s *Subscription) About() string {
	i := &s.Info
	switch {
	case i.GID != ib.GID{}:
		return i.GID.String()
	case i.LIDRangeBegin == mad.AllLIDs:
		return "all"
	case i.LIDRangeEnd == 0 || i.LIDRangeEnd == i.LIDRangeBegin:
		return fmt.Sprintf("LID %v", i.LIDRangeBegin)
	default:
		return fmt.Sprintf("LIDs %v to %v", i.LIDRangeBegin, i.LIDRangeEnd)
	}
}

func noticesOf(i *mad.InformInfo) string {
	switch {
	case i.IsGeneric != 1:
		return "a vendor's notices"
	case i.TrapNumber == mad.AllTraps:
		return "all traps"
	default:
		return "traps " + i.TrapNumber.String()
	}
}

// key identifies a record for queries.
type key struct {
	as   ib.GUID
	enum uint16
}

func compareKeys(a, b key) int { return cmp.Or(cmp.Compare(a.as, b.as), cmp.Compare(a.enum, b.enum)) }

// identity is the part of a subscription that makes two subscriptions the same.
type identity struct {
	as         ib.GUID
	qp         uint32
	gid        ib.GID
	begin, end ib.LID
	generic    uint8
	kind       uint16
	trap       mad.TrapNum
	producer   uint32
}

func identityOf(as ib.GUID, qp uint32, i *mad.InformInfo) identity {
	id := identity{as, qp, i.GID, i.LIDRangeBegin, i.LIDRangeEnd, i.IsGeneric, i.Type, i.TrapNumber, i.ProducerType}
	if id.gid != (ib.GID{}) {
		id.begin, id.end = 0, 0 // it does not count
	}
	return id
}

// Snapshot is all subscriptions at one moment. It is immutable.
type Snapshot struct {
	all registry.Map[key, *Subscription]
}

// Len is the number of subscriptions.
func (s Snapshot) Len() int { return s.all.Len() }

// All visits all subscriptions.
func (s Snapshot) All(yield func(*Subscription) bool) {
	s.all.All(func(_ key, x *Subscription) bool { return yield(x) })
}

// Above visits the subscriptions above the one of a GUID with a number, by GUID and number.
func (s Snapshot) Above(as ib.GUID, enum uint16) iter.Seq[*Subscription] {
	return func(yield func(*Subscription) bool) {
		s.all.Above(key{as, enum})(func(_ key, x *Subscription) bool { return yield(x) })
	}
}

// Report is a packet to be sent. Its transaction id has 32 bits.
type Report struct {
	To  Address
	MAD mad.MAD
}

// Effects are the results of a call, in this order: Save is durable before anything else is done.
type Effects struct {
	Save   []sm.Fact
	Send   []Report
	Events []Event
}

// Answer is the answer to a request.
type Answer struct {
	// Verdict is not trust.OK for a request that is dropped. The caller drops it and reports the reason.
	Verdict trust.Verdict
	Status  mad.Status
	Record  mad.InformInfo // also of a refusal
	Looks   int            // at LIDs of a range, by an untrusted requester
	Effects
}

// Why returns the reason of a refusal that is answered.
func (a *Answer) Why() Reason {
	if len(a.Events) == 0 || a.Events[0].Kind != Refused {
		return NoReason
	}
	return a.Events[0].Reason
}

// Kind is the kind of an event.
type Kind uint8

// Kinds of events.
const (
	Refused    Kind = iota // for a Reason
	Subscribed             // a subscription is new
	Ended                  // by its subscriber
	Dropped                // for a Reason
	Failed                 // a report was not answered
	Problem                // for a Reason
	Distrusted             // the SA_Key that it was made with is no longer accepted
)

var kinds = [...]string{"refused", "made", "ended", "dropped", "has an unanswered report", "problem", "is trusted no longer: its SA_Key was retired"}

// String names the kind.
func (k Kind) String() string { return registry.Word(kinds[:], "Kind", k) }

// Reason is the reason of an event.
type Reason uint8

// Reasons.
const (
	NoReason       Reason = iota
	BadSubscribe          // neither 0 nor 1
	BadIsGeneric          // neither 0 nor 1
	SecurityTraps         // an untrusted subscription to traps 256 to 259
	BadRange              // no range of LIDs
	NotInPartition        // no partition shared with the requested source
	NotFound              // nothing to be ended
	TooMany               // of all together
	PortGone              // the port disappeared
	NoAnswer              // a report was not answered
	UnusableFact          // a saved fact cannot be restored
)

var reasons = [...]string{
	NoReason: "none", BadSubscribe: "Subscribe is neither 0 nor 1", BadIsGeneric: "IsGeneric is neither 0 nor 1",
	SecurityTraps: "traps of security are for trusted subscribers", BadRange: "the range of LIDs is none",
	NotInPartition: "no partition is shared with who is to be heard of", NotFound: "there is no such subscription",
	TooMany: "there are as many subscriptions as there may be", PortGone: "the port is gone", NoAnswer: "a report was not answered",
	UnusableFact: "it cannot be restored",
}

// String returns it in words.
func (r Reason) String() string { return registry.Word(reasons[:], "Reason", r) }

func (r Reason) status() mad.Status {
	switch r {
	case NoReason:
		return mad.StatusOK
	case TooMany:
		return mad.StatusNoResources
	default:
		return mad.StatusInvalidRequest
	}
}

// Event is an event to report.
type Event struct {
	Kind   Kind
	Reason Reason
	Asker  portindex.Asker // zero: no requester
	Port   ib.GUID         // port or alias GUID of the subscriber
	Info   mad.InformInfo
}

// String implements fmt.Stringer.
func (e Event) String() string {
	s := fmt.Sprintf("subscription of %v to %s %v", e.Port, noticesOf(&e.Info), e.Kind)
	return s + registry.Cause(&e.Asker, e.Reason)
}

// Stats count reports.
type Stats struct {
	Sent, Resent, Answered, Failed uint64
	Dropped                        uint64 // for want of room
	OnWire, Queued, Posting        int
}

// Registry is the state of all subscriptions and reports. It is not safe for concurrent
// use; snapshots are.
type Registry struct {
	cfg    Config
	fabric registry.Fabric // nil before the first Follow
	Snapshot

	subs  map[identity]*sub
	ports map[ib.GUID]*party // by port GUID
	heard registry.Map[topic, registry.Map[uint64, *sub]]
	last  uint64 // id of the newest
	stats Stats

	told   map[ib.GUID]announced // by port GUID
	doubt  map[ib.GUID]bool      // ports that may have lost P_Keys
	unsure bool                  // it is not known which ports are there

	posts []posting // that not all subscriptions were looked at for
	more  time.Time // when they go on; zero: there are none

	turns [2][]*party // ports that may be sent a report, in turn: those that answer, and others
	mute  int         // reports under way to the others
	out   map[uint32]*sub
	due   registry.Map[deadline, *sub]
	tid   uint32
	gone  registry.Map[departure, *party] // ports that are not there

	eff *Effects // of the call at hand
}

// topic is the subject of a subscription, to find the subscriptions that may want a notice.
type topic struct {
	generic uint8
	trap    mad.TrapNum // or device id; mad.AllTraps: any
}

func compareTopics(a, b topic) int {
	return cmp.Or(cmp.Compare(a.generic, b.generic), cmp.Compare(a.trap, b.trap))
}

// deadline is when a report that is under way is late.
type deadline struct {
	at  int64 // nanoseconds since 1970
	tid uint32
}

// departure is when a port that is gone is given up.
type departure struct {
	at   int64
	port ib.GUID
}

// sub is a subscription with its reports.
type sub struct {
	*Subscription
	id    uint64
	party *party

	queue   []*registry.Notice
	gone    bool // it ended
	ready   bool // stands in its party's list
	failing bool // its last report was not answered: the next is tried once

	tid   uint32 // of the report under way, 0: none
	mute  bool   // it counts as one to a port that does not answer
	due   int64
	tries int
}

// party is a port that subscribes.
type party struct {
	port  ib.GUID
	subs  map[*sub]bool
	ready []*sub // that have a report to send, in turn
	out   int    // reports under way
	wait  int    // reports in queues
	turn  bool   // stands among those whose turn comes
	mute  bool   // it did not answer the last report
	until int64  // it is gone, and given up then; 0: it is there
}

// New creates a registry without subscriptions.
func New(cfg Config) *Registry {
	return &Registry{
		cfg: cfg.withDefaults(), Snapshot: Snapshot{registry.NewMap[key, *Subscription](compareKeys)},
		subs: make(map[identity]*sub), ports: make(map[ib.GUID]*party), out: make(map[uint32]*sub),
		heard: registry.NewMap[topic, registry.Map[uint64, *sub]](compareTopics), told: make(map[ib.GUID]announced), doubt: make(map[ib.GUID]bool),
		due: registry.NewMap[deadline, *sub](func(a, b deadline) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tid, b.tid))
		}),
		gone: registry.NewMap[departure, *party](func(a, b departure) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.port, b.port))
		}),
	}
}

// SetTrust changes Config.Trust.
func (r *Registry) SetTrust(o trust.Options) { r.cfg.Trust = o }

// Now returns all current subscriptions.
func (r *Registry) Now() Snapshot { return r.Snapshot }

// Stats returns the counters of reports.
func (r *Registry) Stats() Stats {
	s := r.stats
	s.OnWire, s.Posting = len(r.out), len(r.posts)
	return s
}
