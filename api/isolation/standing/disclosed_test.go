package standing

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// disclosing returns a report in which subnet administration disclosed so much; 0: it was examined, and disclosed nothing.
func disclosing(n int, secret bool) *v1.Isolation {
	r := report(v1.Isolated)
	r.Administration = v1.IsolationAdministration{Verdict: v1.SAConfined, Disclosed: n}
	if n > 0 {
		r.Administration.Verdict = v1.SADiscloses
		r.Administration.Disclosures = []v1.IsolationDisclosure{{
			From: v1.DisclosurePort{Party: "blue", Host: "h2", GUID: 2, Place: ib.Place{Switch: 7, Port: 2}}, Record: "PathRecord", Field: "DLID", Value: "5",
			About: v1.DisclosurePort{Party: "red", Host: "h1", GUID: 1, Place: ib.Place{Switch: 7, Port: 1}}, Cure: "set this",
		}}
	}
	if secret {
		r.Administration.Disclosures = append(r.Administration.Disclosures, v1.IsolationDisclosure{
			From: r.Administration.Disclosures[0].From, Record: "PortInfoRecord", Field: "M_Key", Secret: true, Cure: "replace it",
		})
	}
	return r
}

// A disclosure is one event, with the port that asked, the name, its owner, and the cure. What was not examined changes nothing.
func TestDisclosuresAreEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Hour)
		defer f.resign()
		f.lead(t)
		f.find(disclosing(0, false), time.Hour)
		f.want(t, "nothing is disclosed", "", 0)
		f.find(disclosing(3, false), time.Hour)
		f.want(t, "something is", "isolation.disclosed name", 1)
		list, _ := f.reported(t)
		e := &list[0]
		for _, want := range []string{"3 names and keys", "h2", "blue", "PathRecord", "DLID 5 of port", "h1", "red"} {
			if !strings.Contains(e.Seen, want) {
				t.Errorf("the event lacks %q: %s", want, e.Seen)
			}
		}
		if e.Severity != events.Critical || e.Do != "set this" || e.Expected == "" {
			t.Errorf("%+v", e)
		}
		s, _ := f.keeps.Standing()
		if s.Counts.Disclosed != 3 || !s.Counts.Asked {
			t.Errorf("standing %+v", s)
		}
		f.find(disclosing(3, false), time.Hour)
		unasked := report(v1.Isolated)
		unasked.Administration = v1.IsolationAdministration{Verdict: v1.SANotExamined}
		f.find(unasked, time.Hour)
		if s, _ := f.keeps.Standing(); s.Counts.Asked {
			t.Errorf("not examined: %+v", s)
		}
		f.lead(t)
		f.rest(time.Minute)
		f.find(disclosing(4, true), time.Hour)
		f.want(t, "it was there all the time, also for another instance", "isolation.disclosed name", 1)
		f.find(disclosing(0, false), 5*time.Hour)
		f.find(disclosing(4, true), time.Hour)
		wantDisclosed(t, f, "it is back, with a key", "key", 2)
		list, _ = f.reported(t)
		if e := &list[len(list)-1]; !strings.Contains(e.Seen, "the key M_Key") || e.Do != "replace it" {
			t.Errorf("%+v", e)
		}
		for range 2 {
			f.find(disclosing(0, false), time.Hour)
			f.find(disclosing(1, false), 15*time.Minute)
		}
		wantDisclosed(t, f, "it comes and goes", "key", 2)
		f.find(disclosing(1, false), time.Hour)
		wantDisclosed(t, f, "and stays", "name", 3)
	})
}

// wantDisclosed compares the newest event of a disclosure, and how many there were.
func wantDisclosed(t *testing.T, f *fabric, what, cause string, n int) {
	t.Helper()
	list, _ := f.reported(t)
	got, m := "", 0
	for i := range list {
		if list[i].Type == events.IsolationDisclosed {
			got = list[i].Cause
			m += int(list[i].Count)
		}
	}
	if got != cause || m != n {
		t.Errorf("%s: %d disclosures, the newest %q, want %d and %q", what, m, got, n, cause)
	}
}
