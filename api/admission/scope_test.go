package admission

import (
	"fmt"
	"testing"

	"portcullis/api/limit"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// TestRangesCover compares ranges that meet, overlap, leave gaps or are missing.
func TestRangesCover(t *testing.T) {
	for _, tt := range []struct {
		scope, tenant []string
		want          bool
	}{
		{[]string{"0x0100-0x01ff"}, []string{"0x0100-0x01ff"}, true},
		{[]string{"0x0100-0x01ff"}, []string{"0x0180", "0x0110-0x011f"}, true},
		{[]string{"0x0180-0x01ff", "0x0100-0x017f"}, []string{"0x0100-0x01ff"}, true},
		{[]string{"0x0100-0x0190", "0x0150-0x01ff"}, []string{"0x0100-0x01ff"}, true},
		{[]string{"0x0100-0x017e", "0x0180-0x01ff"}, []string{"0x0100-0x01ff"}, false},
		{[]string{"0x0100-0x01ff"}, []string{"0x00ff-0x0100"}, false},
		{[]string{"0x0100-0x01ff"}, []string{"0x01ff-0x0200"}, false},
		{[]string{"0x0100-0x01ff"}, []string{"0x0100", "0x0001"}, false},
		{[]string{"0x0001-0x7ffe"}, []string{"0x7ffe"}, true},
		{[]string{"0x0100-0x01ff"}, nil, false},
		{nil, []string{"0x0100"}, false},
		{nil, nil, false},
	} {
		scope, err := parseRanges(tt.scope)
		if err != nil {
			t.Fatal(err)
		}
		tenant, err := parseRanges(tt.tenant)
		if err != nil {
			t.Fatal(err)
		}
		if got := scope.cover(tenant); got != tt.want {
			t.Errorf("%v covers %v: %v, want %v", scope, tenant, got, tt.want)
		}
	}
}

// TestStrangersHideNoRefusal: refusals of strangers, under any number of names, keep
// no refusal of a credential out of the audit log.
func TestStrangersHideNoRefusal(t *testing.T) {
	l := awaiting(t)
	for i := range limit.MaxKeys + 10 {
		name := fmt.Sprintf("zz%d", i)
		_ = l.svc.deny(l.ctx(), denial{host: name, source: "192.0.2.1", proven: provenNothing, stranger: true}, unknownHost(name))
	}
	if n := l.svc.notes.Len(); n > 0 {
		t.Errorf("hosts that are not in inventory took %d places of the limiter", n)
	}
	within := Within(l.ctx(), &Scope{PKeys: Ranges{{First: 0x100, Last: 0x101}}, Hosts: []string{"host-2"}})
	if _, err := l.svc.Release(within, "scheduler", "host-1"); !refusal.IsKind(err, refusal.Refused) {
		t.Fatalf("release of a host out of scope: %v", err)
	}
	if _, err := l.svc.Assign(within, "scheduler", "host-1", v1.Assignment{Cluster: "c1"}); !refusal.IsKind(err, refusal.Refused) {
		t.Fatalf("assignment of a host out of scope: %v", err)
	}
	if r, a := l.audited("host.release"), l.audited("host.assign"); r != 1 || a != 2 { // with that of the lab
		t.Errorf("%d refused releases and %d assignments in the audit log, want 1, and 2 with that which was carried out", r, a)
	}
	// Hosts that are known take nothing of credentials either.
	for i := range limit.MaxKeys + 10 {
		_ = l.svc.deny(l.ctx(), denial{host: "host-1", epoch: int64(i), source: "192.0.2.1", proven: provenEK}, &attest.Refusal{Code: ReasonWindow})
	}
	if _, err := l.svc.Release(within, "scheduler-2", "host-1"); !refusal.IsKind(err, refusal.Refused) {
		t.Fatalf("release of a host out of scope: %v", err)
	}
	if r := l.audited("host.release"); r != 2 {
		t.Errorf("%d refused releases in the audit log, want 2", r)
	}
}
