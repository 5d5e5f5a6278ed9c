package remedy

import (
	"cmp"
	"slices"
	"time"

	"portcullis/api/isolation"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

const (
	// patience is how long drift lasts that a change of memberships may explain, before it is acted on.
	patience = 2 * time.Minute
	// grace is how long the Subnet Manager has to correct drift before the host is fenced.
	grace = 2 * time.Minute
	// again is the pause between two orders to correct the same drift.
	again = 5 * time.Minute
	// mostRows bounds the rows that are acted on at a time. The others follow when these end.
	mostRows = 1000
	// mostAtPort bounds them of one port, so that an adapter which holds many P_Keys takes no place of others.
	mostAtPort = 8
	// mostCorrected bounds the ports of one order to the Subnet Manager, which takes sm.MaxSuspected.
	mostCorrected = 256
	// atOnce bounds the events of one transaction.
	atOnce = 50
)

// row is drift that was reported.
type row struct {
	v1.Drift
	key       string    // isolation.DriftKey, within next
	Reported  time.Time `json:"reported"`
	Corrected time.Time `json:"corrected,omitzero"` // last order to the Subnet Manager
	Fencing   time.Time `json:"fencing,omitzero"`   // since when the host is to be fenced
	Fenced    time.Time `json:"fenced,omitzero"`
}

// record is what the store has: rows by isolation.DriftKey, sorted.
type record struct {
	Read time.Time `json:"read,omitzero"` // when the reading began that the last change is of
	Rows []row     `json:"rows,omitempty"`
}

const key = "now"

func records() store.Collection[record] { return store.NewCollection[record]("isolation/drift", 1) }

// input is what is known at one time.
type input struct {
	now         time.Time
	begun, read time.Time  // when the newest reading of everything began, and the newest one
	drift       []v1.Drift // that it found, by isolation.DriftKey
	policy      Policy
}

// step is what follows.
type step struct {
	found, ended []row      // to be recorded as events
	correct      []ib.Place // at most mostCorrected
	fence        []row      // whose hosts are to be fenced, one for each host
	free         []string   // hosts that are not to be fenced any more
	more         bool       // something is left for the next step
}

// isEmpty reports whether nothing follows.
func (s *step) isEmpty() bool {
	return len(s.found)+len(s.ended)+len(s.correct)+len(s.fence)+len(s.free) == 0
}

// next returns the record that follows, and what is to be done. From a reading that is older than the one before, nothing follows.
func (r record) next(in *input) (record, step) {
	var s step
	if in.read.Before(r.Read) {
		return r, s
	}
	rows := make([]row, 0, len(r.Rows))
	found, unknown := byKey(in.drift)
	for _, x := range r.Rows {
		x.key = isolation.DriftKey(&x.Drift)
		switch d := found[x.key]; {
		case d != nil:
			x.Found = d.Found
			x.decide(in, &s)
		case unknown[tableOf(&x.Drift)]: // what is not known takes nothing away
		case len(s.ended) < atOnce:
			s.ended = append(s.ended, x)
			continue
		default:
			s.more = true
		}
		delete(found, x.key)
		rows = append(rows, x)
	}
	rows = s.arrive(in, found, rows)
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.key, b.key) })
	s.order(in, rows)
	return record{in.read, rows}, s
}

// table is a table or setting that drift is about.
type table struct {
	guid ib.GUID
	at   ib.Place
	in   string
}

func tableOf(d *v1.Drift) table { return table{d.GUID, d.Place, d.In} }

// byKey returns drift by its key, and the tables of which nothing is known.
func byKey(drift []v1.Drift) (found map[string]*v1.Drift, unknown map[table]bool) {
	found, unknown = make(map[string]*v1.Drift, len(drift)), map[table]bool{}
	for i := range drift {
		d := &drift[i]
		found[isolation.DriftKey(d)] = d
		switch d.Kind {
		case v1.DriftUnread:
			unknown[tableOf(d)] = true
		case v1.DriftAbsent:
			unknown[table{d.GUID, d.Place, v1.DriftInAdapter}], unknown[table{d.GUID, d.Place, v1.DriftInSwitch}] = true, true
		}
	}
	return found, unknown
}

// arrive adds what was found that is not reported yet, the oldest first, and of one port no more than a few.
func (s *step) arrive(in *input, found map[string]*v1.Drift, rows []row) []row {
	of, corrected := map[ib.Place]int{}, map[ib.Place]time.Time{}
	for i := range rows {
		at := rows[i].Place
		of[at]++
		if t := rows[i].Corrected; t.After(corrected[at]) {
			corrected[at] = t
		}
	}
	var fresh []row
	for k, d := range found {
		if in.policy[d.Kind] >= Report && (isSoon(d.Kind) || in.now.Sub(d.Since) >= patience) {
			fresh = append(fresh, row{Drift: *d, key: k, Reported: in.now, Corrected: corrected[d.Place]})
		}
	}
	slices.SortFunc(fresh, func(a, b row) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.key, b.key)) })
	fresh = slices.DeleteFunc(fresh, func(x row) bool { of[x.Place]++; return of[x.Place] > mostAtPort })
	n := min(len(fresh), atOnce, max(0, mostRows-len(rows)))
	s.more = s.more || n < len(fresh) && n == atOnce
	s.found = fresh[:n]
	return append(rows, fresh[:n]...)
}

// decide has the host of a row fenced, if the policy wants that and a reading of everything that began later has the drift, although it
// was to be corrected. Where the policy does not want that any more, the host is not to be fenced.
func (x *row) decide(in *input, s *step) {
	switch {
	case in.policy[x.Kind] != Fence:
		if !x.Fencing.IsZero() && x.Fenced.IsZero() {
			x.Fencing = time.Time{}
			s.free = append(s.free, x.Host)
		}
	case x.Host != "" && x.Fencing.IsZero() && in.now.Sub(x.Reported) >= grace && in.begun.After(x.Reported):
		x.Fencing = in.now
	}
}

// order collects what is to be corrected, and fenced.
func (s *step) order(in *input, rows []row) {
	hosts, places := map[string]bool{}, map[ib.Place]bool{}
	for i := range rows {
		x := &rows[i]
		switch due := in.policy[x.Kind] >= Correct && in.now.Sub(x.Corrected) >= again && !x.Place.IsZero(); {
		case !due:
		case places[x.Place]:
			x.Corrected = in.now
		case len(places) == mostCorrected:
			s.more = true
		default:
			x.Corrected, places[x.Place] = in.now, true
			s.correct = append(s.correct, x.Place)
		}
		if !x.Fencing.IsZero() && x.Fenced.IsZero() && !hosts[x.Host] {
			hosts[x.Host] = true
			s.fence = append(s.fence, *x)
		}
	}
}
