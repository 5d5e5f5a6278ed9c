package admission

import (
	"fmt"
	"testing"

	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
)

// TestStrangersHideNoRefusal: refusals of strangers, under any number of names, keep
// no refusal of a credential out of the audit log.
func TestStrangersHideNoRefusal(t *testing.T) {
	l := awaiting(t)
	for n := range 500 {
		_ = l.stranger(fmt.Sprintf("zz%d", n), n%250)
	}
	within := tenancy.Within(l.ctx(), &tenancy.Scope{PKeys: tenancy.Ranges{{First: 0x100, Last: 0x101}}, Hosts: []string{"host-2"}})
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
	l.must(l.svc.Release(l.ctx(), "alice", "host-2"))
	for n := range 250 {
		_ = l.ask("host-2", "host-2", n)
	}
	if _, err := l.svc.Release(within, "scheduler-2", "host-1"); !refusal.IsKind(err, refusal.Refused) {
		t.Fatalf("release of a host out of scope: %v", err)
	}
	if r := l.audited("host.release"); r != 3 {
		t.Errorf("%d releases in the audit log, want 2 that were refused, and that which was carried out", r)
	}
}
