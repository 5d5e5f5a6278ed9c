package query_test

import (
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
)

// standing is how subnet administration might stand.
func standing() *sa.Status {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &sa.Status{
		Serving: true, Stats: sa.Stats{Packets: 12, Answers: 3, Tables: 2, Costly: 1}, Groups: 4, Services: 5, Subscriptions: 6,
		Reports: inform.Stats{Sent: 7, OnWire: 8}, Epoch: 9, Since: at,
		Violations: []trust.Violation{
			{ID: 1, Verdict: trust.WrongKey, GUID: 0x0020000000000101, As: 0x0020000000000101, Place: ib.Place{Switch: leaf1, Port: 2}, LID: 9, Count: 11, First: at, Last: at},
			{ID: 2, Verdict: trust.UnknownSource, LID: 99, Count: 1, First: at, Last: at},
		},
	}
	s.Stats.Refused[trust.WrongKey] = 11
	s.Stats.RMPP.Sending, s.Stats.RMPP.Resent = 13, 14
	s.Limiter[limiter.Administration][limiter.NodeRate] = 15
	s.Front.Limiter[limiter.Management][limiter.NodeRate], s.Front.Limiter[limiter.Other][limiter.Pass] = 16, 17
	s.Front.Violations = []trust.Violation{{ID: 1, Verdict: trust.Flood, GUID: 0x0020000000000101, Place: ib.Place{Switch: leaf1, Port: 2}, LID: 9, Count: 16, First: at, Last: at}}
	return s
}

// TestViolationsOfAdministration: a request to subnet administration that was dropped is listed after the reports of
// devices, with the host by its place.
func TestViolationsOfAdministration(t *testing.T) {
	o := accused(t)
	o.OnSA(standing())
	var got []string
	q := v1.ViolationQuery{PageQuery: v1.PageQuery{Limit: 1}}
	for range 9 {
		page, err := o.Violations(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Items {
			got = append(got, v.Kind+" "+v.Verdict+" "+v.Host+" "+v.Tenant)
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	if want := "m-key confirmed compute-1 acme, p-key claimed  , sa-wrong-key claimed compute-1 acme, sa-unknown-source claimed  , mad-flood claimed compute-1 acme"; strings.Join(got, ", ") != want {
		t.Errorf("listed %q,\nwant   %q", strings.Join(got, ", "), want)
	}
	page, err := o.Violations(t.Context(), v1.ViolationQuery{Kind: "sa-wrong-key"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Count != 11 || page.Items[0].At != "leaf1/2" {
		t.Errorf("of a kind: %+v, %v", page, err)
	}
	if host, tenant := o.Owner(&sa.Violation{Violation: standing().Violations[0]}); host != "compute-1" || tenant != "acme" {
		t.Errorf("the log names %q of %q", host, tenant)
	}
	o.OnSA(nil)
	if page, err := o.Violations(t.Context(), v1.ViolationQuery{Kind: "sa-wrong-key"}); err != nil || len(page.Items) != 0 {
		t.Errorf("without subnet administration: %+v, %v", page, err)
	}
}

// TestMetricsOfAdministration: each series is there, with what was counted.
func TestMetricsOfAdministration(t *testing.T) {
	o := accused(t)
	before := gather(t, o)
	o.OnSA(standing())
	all := gather(t, o)
	for name, series := range map[string]int{
		"portcullis_sa_serving": 1, "portcullis_sa_packets_total": 1, "portcullis_sa_answers_total": 1, "portcullis_sa_tables_total": 1,
		"portcullis_sa_refused_total": trust.NumVerdicts - 1, "portcullis_sa_limited_total": limiter.NumLanes * (limiter.NumVerdicts - 1),
		"portcullis_mad_limited_total": 3 * limiter.NumVerdicts,
		"portcullis_sa_costly_total":   1, "portcullis_sa_rmpp_sessions": 2, "portcullis_sa_rmpp_ended_total": 5, "portcullis_sa_rmpp_segments_total": 1,
		"portcullis_sa_rmpp_resent_total": 1, "portcullis_sa_registered": 4, "portcullis_sa_reports_total": 5, "portcullis_sa_reports_waiting": 2,
		"portcullis_sa_key_epoch": 1, "portcullis_sa_key_since_timestamp_seconds": 1,
	} {
		if len(all[name]) != series {
			t.Errorf("%s has %d series, want %d", name, len(all[name]), series)
		}
		if len(before[name]) != 0 {
			t.Errorf("%s is there without subnet administration", name)
		}
	}
}
