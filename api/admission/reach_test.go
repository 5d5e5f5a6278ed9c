package admission

import (
	"fmt"
	"testing"

	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

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
