package sa_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// TestAnswersWhileTablesAreRead: after a restart hosts of one partition get paths before the forwarding tables of switches
// were read, others get none, and what is in those tables is asked for again later.
func TestAnswersWhileTablesAreRead(t *testing.T) {
	r := newRig(t, nil)
	grants := []sm.Grant{r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001), r.GrantOf("h6", 1, 0x8002)}
	r.Grant(grants...)
	r.settle()
	r.host("h1")
	mgid := ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}
	mask, fill := join(mgid, r.GUID("h1", 1), 0x8001)
	if m := r.one("h1", ib.SAKey{}, mad.MethodSet, mad.AttrMCMemberRecord, mask, fill); m.Status() != mad.StatusOK {
		t.Fatalf("h1 joins: %v", m.Status())
	}
	r.settle()
	r.SM.AnswersEarly = true
	r.OnSend = func(q *sm.Request) (lost bool) { return q.MAD.Attr() == mad.AttrLinearForwardingTable }
	r.Start()
	r.Want(sm.Intent{Revision: 9, Grants: grants})
	if !r.Until(10*time.Second, func() bool { return r.View() != nil && r.View().Early != nil }) {
		t.Fatal("there are no early tables")
	}
	for host, ok := range map[string]bool{"h5": true, "h6": false} {
		mask, fill := paths(r.GUID("h1", 1), r.GUID(host, 1))
		if m := r.one("h1", ib.SAKey{}, mad.MethodGet, mad.AttrPathRecord, mask, fill); (m.Status() == mad.StatusOK) != ok {
			t.Errorf("path to %s: %v", host, m.Status())
		}
	}
	mask, fill = paths(r.GUID("h1", 1), r.GUID("h5", 1))
	if m := r.one("h1", saKey, mad.MethodGetTrace, mad.AttrTraceRecord, mask, fill); m.Status() != mad.StatusBusy {
		t.Errorf("trace: %v, want busy", m.Status())
	}
	if m := r.one("h1", saKey, mad.MethodGetTable, mad.AttrLinearForwardingRecord, 0, nil); m.Status() != mad.StatusBusy {
		t.Errorf("forwarding tables: %v, want busy", m.Status())
	}
	if r.View().Tables != nil {
		t.Error("the tables were read meanwhile")
	}
	r.OnSend = nil
	r.settle()
	if m := r.one("h1", saKey, mad.MethodGet, mad.AttrPathRecord, mask, fill); m.Status() != mad.StatusOK || len(r.View().Multicast.Trees) != 1 {
		t.Errorf("settled: %v, and %d trees, want a path and 1", m.Status(), len(r.View().Multicast.Trees))
	}
}
