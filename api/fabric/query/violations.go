package query

import (
	"context"
	"iter"
	"sort"
	"strconv"
	"strings"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

// owner is the host and tenant responsible for the device at a switch port.
type owner struct{ host, tenant string }

// ownerOf returns the owner of a place. A device's own claims do not count: the place does.
func (o *Observer) ownerOf(pl ib.Place) owner {
	if pl.Port == 0 {
		return owner{}
	}
	host := o.cables()[pl]
	return owner{host, o.tenants()[host]}
}

// Owner names the host and the tenant that an event is about, as inventory has
// them cabled to the place it came from; "" for none.
func (o *Observer) Owner(e sm.Event) (host, tenant string) {
	who := o.ownerOf(offender(e))
	return who.host, who.tenant
}

// offender returns the place that an event accuses.
func offender(e sm.Event) ib.Place {
	switch e := e.(type) {
	case *violation.Violation:
		return e.Place
	case *sm.SMInfoRefused:
		return e.Place
	case *sm.ForeignSM:
		return e.Place
	case *sm.StrayAnswer:
		return e.Place
	case *sm.MKeyRefused:
		return e.Place
	case *sm.MKeyObeyed:
		return e.Place
	case *sa.Violation:
		return e.Place
	default:
		return ib.Place{}
	}
}

// Violations lists what was reported, in the order in which it began.
func (o *Observer) Violations(_ context.Context, q v1.ViolationQuery) (*v1.Page[v1.FabricViolation], error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	after := uint64(0)
	if q.After != "" {
		if after, err = strconv.ParseUint(q.After, 10, 64); err != nil {
			return nil, badCursor()
		}
	}
	x.ready()
	page, limit := pageOf[v1.FabricViolation](x), pageSize(q.Limit)
	for row, counts := range o.violationsAfter(x, after) {
		if !asksFor(&q, counts, &row) {
			continue
		}
		if len(page.Items) == limit {
			page.Next = strconv.FormatUint(page.Items[limit-1].ID, 10)
			break
		}
		page.Items = append(page.Items, row)
	}
	return page, nil
}

// violationsAfter visits the rows after an ID, and whether they are violations: first reports of devices, then requests to
// subnet administration, then floods of packets of other classes.
func (o *Observer) violationsAfter(x *index, after uint64) iter.Seq2[v1.FabricViolation, bool] {
	return func(yield func(v1.FabricViolation, bool) bool) {
		if x.View.Violations != nil {
			rows := x.View.Violations.Rows
			rows = rows[sort.Search(len(rows), func(i int) bool { return rows[i].ID > after }):]
			for i := range rows {
				if !yield(o.violation(x, &rows[i]), rows[i].Kind.Violation()) {
					return
				}
			}
		}
		s := o.administration.Load()
		if s == nil {
			return
		}
		for i := range s.Violations {
			if s.Violations[i].ID+firstSAViolation > after && !yield(o.saViolation(x, &s.Violations[i]), true) {
				return
			}
		}
		for i := range s.Front.Violations {
			if s.Front.Violations[i].ID+firstFlood > after && !yield(o.flood(x, &s.Front.Violations[i]), true) {
				return
			}
		}
	}
}

// asksFor reports whether a query asks for a row.
func asksFor(q *v1.ViolationQuery, counts bool, row *v1.FabricViolation) bool {
	wants := func(want, have string) bool { return want == "" || want == have }
	return (q.All || q.Kind != "" || counts) && wants(q.Kind, row.Kind) && wants(q.Verdict, row.Verdict) &&
		wants(q.Host, row.Host) && wants(q.Tenant, row.Tenant)
}

func (o *Observer) violation(x *index, v *violation.Violation) v1.FabricViolation {
	who := o.ownerOf(v.Place)
	row := v1.FabricViolation{
		ID: v.ID, Kind: v.Kind.String(), Trap: uint16(v.Trap), Verdict: v.Verdict.String(), Place: v.Place, GUID: v.GUID, LID: v.LID,
		By: v.By.String(), NamedLID: v.Named, VictimGUID: v.Victim, Host: who.host, Tenant: who.tenant, Reporter: v.Reporter, ReporterPlace: v.ReporterPlace,
		PKey: v.PKey, Detail: v.Detail, Count: v.Count, Repeats: v.Repeats, Counted: v.Counted, First: v.First, Last: v.Last,
		Others: v.Others, Text: v.String(),
	}
	if !v.Place.IsZero() {
		row.At = x.placeName(v.Place)
	}
	switch {
	case !v.ReporterPlace.IsZero():
		row.ReporterAt = x.placeName(v.ReporterPlace)
	case v.Reporter != 0:
		row.ReporterAt = v.Reporter.String()
		if id := x.Fabric.PortByGUID(v.Reporter); id != topo.None {
			row.ReporterAt = x.name(x.Fabric.Port(id).Node)
		}
	}
	return row
}

// violations sends what was counted of violations.
func (g *gauges) violations(x *index) {
	var totals [violation.NumKinds]violation.Total
	if x.View.Violations != nil {
		totals = x.View.Violations.Totals
	}
	for i := range totals {
		kind, t := violation.Kind(i), &totals[i]
		if !kind.Violation() {
			continue
		}
		class := strings.ReplaceAll(kind.String(), "-", "_")
		g.counter(g.d.violations, t.Reported, class, "reported")
		g.counter(g.d.violations, t.Repeated, class, "repeated")
		g.counter(g.d.violations, t.Confirmed, class, "confirmed")
		g.counter(g.d.violations, t.Refuted, class, "refuted")
		g.counter(g.d.violations, t.Counted, class, "counted")
		g.counter(g.d.suppressed, t.Quiet, class)
	}
}
