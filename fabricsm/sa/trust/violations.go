package trust

import (
	"fmt"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm/violationlog"
)

// Dropped describes dropped requests.
type Dropped struct {
	Verdict Verdict
	Who     portindex.Asker
	Port    *portindex.EndPort // that has the source LID; nil: none
	Place   ib.Place           // switch port in front of it, if the caller knows
	Attr    mad.AttrID
	Method  mad.Method
	SGID    ib.GID // of the GRH
	// Target is the port or alias that the request acts for: of proxies, and of
	// registrations that are too many. Owner is the end port that has it.
	Target ib.GUID
	Owner  *portindex.EndPort
	Reason uint8  // of Refused, as its caller defines it: each is counted separately
	Count  uint64 // how many; 0: one
}

// Violation is a row of the list of violations: a kind of dropped requests. It is reported when the row begins and when its
// count reaches 2, 5, 10, 20, 50, ... If it grew since, it is reported again a second later with Quiet set, so that the
// last report of a series has the exact count. It holds no key.
type Violation struct {
	ID      uint64 // of the row
	Verdict Verdict

	GUID  ib.GUID  // physical port that has the source LID; 0: none has
	As    ib.GUID  // the port GUID, or the alias under which it asked
	Place ib.Place // switch port in front of it, as far as known
	LID   ib.LID   // of the last one
	QP    uint32   // of the last one
	SGID  ib.GID   // of the last one; zero: it had no GRH

	Attr       mad.AttrID
	Method     mad.Method
	Target     ib.GUID // port or alias acted for
	TargetPort ib.GUID // physical port of that; 0: unknown

	Count  uint64
	First  time.Time
	Last   time.Time
	Others bool // it stands for rows that there is no room for: all of its kind and source, or of its kind
	Quiet  bool // not for the log
}

// did has the fields that make two violations the same row.
type did struct {
	verdict    Verdict
	reason     uint8
	others     bool
	method     mad.Method
	attr       mad.AttrID
	lid        ib.LID // if no port has it
	guid, as   ib.GUID
	target, of ib.GUID
}

// Source implements violationlog.Report.
func (d did) Source() ib.GUID { return d.guid }

// OfSource implements violationlog.Report.
func (d did) OfSource() did { return did{verdict: d.verdict, guid: d.guid, others: true} }

// OfKind implements violationlog.Report.
func (d did) OfKind() did { return did{verdict: d.verdict, others: true} }

// latest has the data of the last request of a row.
type latest struct {
	lid   ib.LID
	qp    uint32
	sgid  ib.GID
	place ib.Place
}

// Bounds limits the memory for violations.
type Bounds struct {
	Rows      int           // default 4096
	PerSource int           // rows of one end port; default 64
	Quiet     time.Duration // after which a row that comes again is reported from the beginning; default 10 min
}

// Violations counts dropped requests.
type Violations struct {
	violationlog.Table[did, ib.GUID, latest]
	totals [numVerdicts]Total
	grown  bool
}

// Total counts one kind of violations.
type Total struct {
	Count uint64 // dropped
	Quiet uint64 // of these, not reported one by one
}

// NewViolations makes an empty list. Bounds that are 0 are the defaults.
func NewViolations(b Bounds) *Violations {
	if b.Rows <= 0 {
		b.Rows = 4096
	}
	if b.PerSource <= 0 {
		b.PerSource = 64
	}
	if b.Quiet <= 0 {
		b.Quiet = 10 * time.Minute
	}
	// Nothing here is proven later, so all rows may be claimed ones.
	return &Violations{Table: violationlog.New[did, ib.GUID, latest](&violationlog.Bounds{
		Rows: 2 * b.Rows, PerSource: b.PerSource, Kinds: NumVerdicts, Quiet: b.Quiet,
	})}
}

// Note counts a dropped request. loud means that it must be reported now, as a log line, an event and a notice to
// subscribers. Otherwise Tell reports it later.
func (v *Violations) Note(now time.Time, d *Dropped) (row Violation, loud bool) {
	n := max(d.Count, 1)
	what := did{verdict: d.Verdict, reason: d.Reason, method: d.Method, attr: d.Attr, target: d.Target}
	if d.Port != nil {
		what.guid, what.as = d.Port.GUID, d.Who.As
	} else {
		what.lid = d.Who.LID
	}
	if d.Owner != nil {
		what.of = d.Owner.GUID
	}
	i, _ := v.Find(what, now)
	v.Add(i, n, now)
	v.grown = true
	w, total := v.Row(i), &v.totals[d.Verdict]
	w.More = latest{lid: d.Who.LID, qp: d.Who.QP, sgid: d.SGID, place: d.Place}
	total.Count += n
	if loud = v.Loud(i, now); loud {
		w.Told = w.Count
		return violationOf(w), true
	}
	total.Quiet += n
	v.Later(i)
	return Violation{}, false
}

// Report quietly reports rows that grew since their last report, at most some hundred, and reports whether there are more.
// Once a second is a good interval.
func (v *Violations) Report(tell func(*Violation)) (more bool) {
	return v.Due(func(i int32) {
		w := v.Row(i)
		w.Told = w.Count
		e := violationOf(w)
		e.Quiet = true
		tell(&e)
	})
}

// List returns all rows in the order in which they began.
func (v *Violations) List() []Violation {
	out := make([]Violation, 0, v.Len())
	for w := range v.All() {
		out = append(out, violationOf(w))
	}
	return out
}

// Changed reports whether the result of List has changed since the last call of Changed.
func (v *Violations) Changed() bool {
	was := v.grown
	v.grown = false
	return was
}

// Total counts a kind of violations since the list was made.
func (v *Violations) Total(of Verdict) Total { return v.totals[of] }

func violationOf(w *violationlog.Row[did, latest]) Violation {
	d := &w.Report
	return Violation{
		ID: w.ID, Verdict: d.verdict, GUID: d.guid, As: d.as, Place: w.More.place, LID: w.More.lid, QP: w.More.qp, SGID: w.More.sgid,
		Attr: d.attr, Method: d.method, Target: d.target, TargetPort: d.of,
		Count: w.Count, First: w.Began.UTC(), Last: w.Seen.UTC(), Others: d.others,
	}
}

var words = [numVerdicts]string{
	BadHeader: "MAD of another class or version", UnknownSource: "request from a LID that no port has", TooOften: "too many requests",
	Flood: "flood of packets", WrongKey: "wrong SA_Key", RetiredKey: "SA_Key that was retired", KeyElsewhere: "SA_Key from a port that may not use it",
	SpoofedSGID: "source GID of another", NotAllowed: "request that untrusted clients may not make", SecurityTraps: "untrusted subscription to security traps",
	AliasRefused: "change of alias GUIDs that is not allowed", Proxy: "untrusted request in the name of another port",
	Sibling:       "request in the name of another alias of the port",
	TooManyGroups: "too many multicast groups", TooManyServices: "too many services", TooManySubscriptions: "too many subscriptions",
	WrongServiceKey: "service name without its key", ReservedName: "reserved service name",
	Refused: "registration that was refused",
}

// What returns the name of the request, for example "Set MCMemberRecord". It is empty for a row of several kinds.
func (e *Violation) What() string {
	if e.Others || e.Method == 0 {
		return ""
	}
	h := mad.Header{Class: mad.ClassSubnAdm, Attr: e.Attr}
	return fmt.Sprintf("%v %s", e.Method, h.AttrName())
}

// String returns a sentence. It contains only known facts: a source LID is a claim of the sender.
func (e *Violation) String() string {
	var b strings.Builder
	b.WriteString(words[e.Verdict])
	if e.Others {
		b.WriteString(", various")
	} else if what := e.What(); what != "" {
		fmt.Fprintf(&b, ", %s,", what)
	}
	switch {
	case e.GUID != 0:
		fmt.Fprintf(&b, " by port %v", e.GUID)
	case e.Others:
		b.WriteString(" by many")
	default:
		b.WriteString(" by an unknown sender")
	}
	if e.As != e.GUID {
		fmt.Fprintf(&b, " as %v", e.As)
	}
	if e.LID != 0 {
		fmt.Fprintf(&b, " (LID %v)", e.LID)
	}
	if !e.Place.IsZero() {
		fmt.Fprintf(&b, " at %v", e.Place)
	}
	if e.Verdict == SpoofedSGID {
		fmt.Fprintf(&b, ", which showed %v", e.SGID)
	}
	if e.Target != 0 {
		fmt.Fprintf(&b, ", for %v", e.Target)
	}
	if e.Verdict != Refused {
		b.WriteString("; dropped")
	}
	fmt.Fprintf(&b, ", number %d", e.Count)
	return b.String()
}
