package sm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
)

// forge sends a datagram from port 1 of a host, with all headers as they are.
func (e *env) forge(from string, m *sim.Forged) {
	e.t.Helper()
	if err := e.fab.InjectMAD(sim.Endpoint{Node: from, Port: 1}, *m); err != nil {
		e.t.Fatal(err)
	}
	e.arrive(e.st.Take(nil))
}

// smp is an SMP that shows the key offered, over a directed route or, if route is
// nil, to a LID.
func smp(method mad.Method, attr mad.AttrID, route *mad.Route, lid ib.LID) *sim.Forged {
	f := &sim.Forged{SLID: ib.PermissiveLID, DLID: ib.PermissiveLID}
	mad.NewSMP(&f.MAD, mad.Header{Method: method, Attr: attr, TID: 0x1234}, route, ib.NewMKey(offered))
	if route == nil {
		f.DLID = lid
	}
	return f
}

// notice is a trap with a notice, in the name of a LID.
func notice[T any](t testing.TB, slid, dlid ib.LID, tid ib.TID, n *T) *sim.Forged {
	t.Helper()
	f := &sim.Forged{SLID: slid, DLID: dlid}
	mad.NewSMP(&f.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: tid}, nil, ib.MKey{})
	if err := mad.Encode(f.MAD.Data(), n); err != nil {
		t.Fatal(err)
	}
	return f
}

// listed returns the violations of the last view of a kind.
func (e *env) listed(kind violation.Kind) (out []violation.Violation) {
	if e.view.Violations == nil {
		return nil
	}
	for _, v := range e.view.Violations.Rows {
		if v.Kind == kind {
			out = append(out, v)
		}
	}
	return out
}

// loud returns the counts at which violations of a kind were logged.
func loud(events []sm.Event, kind violation.Kind) (counts []uint64) {
	for _, ev := range events {
		if v, ok := ev.(*violation.Violation); ok && v.Kind == kind && !v.Quiet {
			counts = append(counts, v.Count)
		}
	}
	return counts
}

// noSecrets fails if an event shows the key that was offered.
func noSecrets(t *testing.T, events []sm.Event) {
	t.Helper()
	for _, ev := range events {
		for _, text := range []string{ev.String(), fmt.Sprintf("%+v", ev)} {
			if strings.Contains(strings.ToLower(text), "feedface") {
				t.Errorf("%T shows a key that was offered: %s", ev, text)
			}
		}
	}
}

// settledKeyed is a settled fabric of two levels with M_Keys; its hosts have LIDs.
func settledKeyed(t *testing.T) (*env, []endPort) {
	t.Helper()
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, keyed(t), 1)
	hs := hosts(l)
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{hs[0].grant(0x8001), hs[1].grant(0x8001), hs[2].grant(0x8002)}, Hosts: places(hs)})
	e.mustSettle(time.Minute)
	e.run(time.Second)
	e.takeEvents()
	return e, hs
}
