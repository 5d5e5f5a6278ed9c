package service

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// Names decides which requester may register which name; *trust.ServiceKeys does.
type Names interface {
	// Check judges a request to register, or to take back, a record with a ServiceName,
	// which ends at its first NUL.
	Check(o *trust.Options, name []byte, shown ib.ServiceKey, trusted bool) trust.Verdict
}

// Config is the fixed configuration of a Registry.
type Config struct {
	Prefix ib.Prefix // subnet prefix; default ib.DefaultPrefix

	// MaxLease is the longest lease that untrusted requests get, in whole seconds;
	// default a week.
	MaxLease time.Duration
	// MaxRecords bounds the records of all together; default 262144.
	MaxRecords int
	// DropWithPort has records go when their port does, not when their lease ends:
	// option drop_event_subscriptions.
	DropWithPort bool

	// IgnoreKeys stores ServiceKeys but requires them from no requester, as OpenSM does.
	IgnoreKeys bool

	// Guard and Limits are shared by all of subnet administration; Trust holds the limits. Without a Guard no untrusted
	// port acts for others. Without Limits there are no limits.
	Guard  registry.Guard
	Limits *trust.Limits
	Trust  trust.Options
	Names  Names // nil: any name
}

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, ib.DefaultPrefix)
	c.MaxLease = cmp.Or(c.MaxLease, 7*24*time.Hour)
	c.MaxRecords = cmp.Or(c.MaxRecords, 1<<18)
	if c.Limits == nil {
		c.Limits = trust.NewLimits()
	}
	return c
}

// RID identifies a record.
type RID struct {
	ID   ib.ServiceID
	GUID ib.GUID // of the ServiceGID
	PKey ib.PKey // 0xFFFF: none was given
}

func compareRIDs(a, b RID) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.PKey, b.PKey))
}

// String names it for logs.
func (r RID) String() string { return fmt.Sprintf("%v of %v, P_Key %v", r.ID, r.GUID, r.PKey) }

// Record is a service. It is immutable.
type Record struct {
	RID
	Record  mad.ServiceRecord
	Expires time.Time // zero: never
	Open    bool      // no P_Key was given
	Home    ib.PKey   // of an open one: whose the port was, see homeOf
}

// lease returns the remaining lease in seconds, rounded up.
func (r *Record) lease(now time.Time) uint32 {
	if r.Expires.IsZero() {
		return mad.LeaseForever
	}
	left := r.Expires.Sub(now)
	if left <= 0 {
		return 0
	}
	return uint32(min((left+time.Second-1)/time.Second, mad.LeaseForever-1))
}

// Snapshot is all records at one moment. It is immutable.
type Snapshot struct {
	records registry.Map[RID, *Record]
}

// Len is the number of records.
func (s Snapshot) Len() int { return s.records.Len() }

// All visits all records by RID.
func (s Snapshot) All(yield func(RID, *Record) bool) { s.records.All(yield) }

// Above visits the records above an RID, by RID.
func (s Snapshot) Above(r RID) iter.Seq2[RID, *Record] { return s.records.Above(r) }

// Get returns a record, or nil if there is none.
func (s Snapshot) Get(r RID) *Record {
	rec, _ := s.records.Get(r)
	return rec
}

// Effects are the results of a request, or of a change of the fabric. Save is durable before anything else is done.
type Effects struct {
	Save   []sm.Fact
	Events []Event
}

// Answer is the answer to a request.
type Answer struct {
	// Verdict is not trust.OK for a request that is dropped. The caller drops it and reports the reason.
	Verdict trust.Verdict
	Status  mad.Status
	Record  mad.ServiceRecord // with mad.StatusOK
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
	Registered             // a record is new
	Replaced               // a record is another now
	Deleted                // by its owner
	Expired                // its lease ended
	Dropped                // for a Reason
	Problem                // for a Reason
)

var kinds = [...]string{"refused", "registered", "replaced", "deleted", "expired", "dropped", "problem"}

// String names the kind.
func (k Kind) String() string { return registry.Word(kinds[:], "Kind", k) }

// Reason is the reason of an event.
type Reason uint8

// Reasons.
const (
	NoReason          Reason = iota
	MissingComponents        // the component mask lacks some
	ForeignPrefix            // the ServiceGID is of no port of this subnet
	InvalidPKey              // base 0
	UnknownPort              // no port has the ServiceGID
	NotInPartition           // requester or port do not have the P_Key
	NoPartition              // requester and port share no partition
	WrongKey                 // not the ServiceKey that the record has
	NotFound                 // there is no such record
	TooMany                  // of all together
	PortGone                 // the port disappeared
	UnusableFact             // a saved fact cannot be restored
)

var reasons = [...]string{
	NoReason: "none", MissingComponents: "components are missing", ForeignPrefix: "the ServiceGID has a foreign subnet prefix",
	InvalidPKey: "the P_Key is invalid", UnknownPort: "no port has the ServiceGID", NotInPartition: "requester or port do not have the P_Key",
	NoPartition: "requester and port share no partition", WrongKey: "the record has another ServiceKey", NotFound: "there is no such record",
	TooMany: "there are as many records as there may be", PortGone: "the port is gone", UnusableFact: "it cannot be restored",
}

// String returns it in words.
func (r Reason) String() string { return registry.Word(reasons[:], "Reason", r) }

func (r Reason) status() mad.Status {
	switch r {
	case NoReason:
		return mad.StatusOK
	case MissingComponents:
		return mad.StatusInsufficientComponents
	case ForeignPrefix:
		return mad.StatusInvalidGID
	case WrongKey:
		return mad.StatusDenied
	case NotFound:
		return mad.StatusNoRecords
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
	RID    RID
	Name   string // as it was given: print it with String
}

// String implements fmt.Stringer. Bytes of the name that are not plain are escaped.
func (e Event) String() string {
	s := fmt.Sprintf("service %v, name %s, %v", e.RID, strconv.QuoteToASCII(e.Name), e.Kind)
	return s + registry.Cause(&e.Asker, e.Reason)
}

// Registry is the state of all services. It is not safe for concurrent use; snapshots
// are.
type Registry struct {
	cfg    Config
	fabric registry.Fabric // nil before the first Follow
	Snapshot

	due   registry.Map[deadline, struct{}] // of records that expire
	ports map[ib.GUID]map[RID]bool         // records by the GUID of their ServiceGID
	doubt map[ib.GUID]bool                 // whose P_Keys are not known

	out *Effects // of the request at hand
}

// deadline is when a record expires.
type deadline struct {
	at  int64 // nanoseconds since 1970
	rid RID
}

func compareDeadlines(a, b deadline) int {
	return cmp.Or(cmp.Compare(a.at, b.at), compareRIDs(a.rid, b.rid))
}

// New creates a registry without records.
func New(cfg Config) *Registry {
	return &Registry{
		cfg: cfg.withDefaults(), Snapshot: Snapshot{registry.NewMap[RID, *Record](compareRIDs)},
		due: registry.NewMap[deadline, struct{}](compareDeadlines), ports: make(map[ib.GUID]map[RID]bool), doubt: make(map[ib.GUID]bool),
	}
}

// SetTrust changes Config.Trust and Config.Names.
func (r *Registry) SetTrust(o trust.Options, n Names) { r.cfg.Trust, r.cfg.Names = o, n }

// Now returns all current records.
func (r *Registry) Now() Snapshot { return r.Snapshot }

// Next returns when Expire has work to do; zero: never.
func (r *Registry) Next() time.Time {
	if d, _, ok := r.due.First(); ok {
		return time.Unix(0, d.at)
	}
	return time.Time{}
}

// most is how many records end in one call.
const most = 256

// Expire drops the records whose lease is over, some at a time. Next returns when to call it again.
func (r *Registry) Expire(now time.Time) (e Effects) {
	r.out = &e
	for range most {
		d, _, ok := r.due.First()
		if !ok || d.at > now.UnixNano() {
			return e
		}
		r.remove(r.Get(d.rid), Event{Kind: Expired})
	}
	return e
}

// put makes or replaces a record.
func (r *Registry) put(rec *Record) {
	if old := r.Get(rec.RID); old != nil {
		r.undue(old)
	} else {
		r.cfg.Limits.Add(trust.Services, rec.GUID)
		if r.ports[rec.GUID] == nil {
			r.ports[rec.GUID] = make(map[RID]bool)
		}
		r.ports[rec.GUID][rec.RID] = true
	}
	if !rec.Expires.IsZero() {
		r.due = r.due.With(deadline{rec.Expires.UnixNano(), rec.RID}, struct{}{})
	}
	r.records = r.records.With(rec.RID, rec)
}

func (r *Registry) undue(rec *Record) {
	if !rec.Expires.IsZero() {
		r.due = r.due.Without(deadline{rec.Expires.UnixNano(), rec.RID})
	}
}

// remove deletes a record and records the reason.
func (r *Registry) remove(rec *Record, e Event) {
	r.undue(rec)
	r.records = r.records.Without(rec.RID)
	if delete(r.ports[rec.GUID], rec.RID); len(r.ports[rec.GUID]) == 0 {
		delete(r.ports, rec.GUID)
	}
	r.cfg.Limits.Remove(trust.Services, rec.GUID)
	r.out.Save = append(r.out.Save, sm.Fact{Kind: sm.FactSAService, Name: factName(rec.RID)})
	e.RID, e.Name = rec.RID, nameOf(&rec.Record)
	r.out.Events = append(r.out.Events, e)
}

// nameOf returns the name of a record up to its first NUL, with any bytes.
func nameOf(rec *mad.ServiceRecord) string {
	name, _, _ := bytes.Cut(rec.ServiceName[:], []byte{0})
	return string(name)
}
