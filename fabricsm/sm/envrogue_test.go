package sm_test

import (
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// rogue is another subnet manager, or a host that plays one: it answers what it
// is asked about itself.
type rogue struct {
	st   *sim.Station
	says mad.SMInfo
}

func (e *env) addRogue(node string, says mad.SMInfo) *rogue {
	e.t.Helper()
	st, err := e.fab.Station(node, true)
	if err != nil {
		e.t.Fatal(err)
	}
	st.SetIsSM(true)
	says.GUID = st.GUID()
	r := &rogue{st: st, says: says}
	e.rogues = append(e.rogues, r)
	return r
}

func (r *rogue) answer(t testing.TB) {
	t.Helper()
	for _, p := range r.st.Take(nil) {
		if p.MAD.Attr() != mad.AttrSMInfo || p.MAD.Method() != mad.MethodGet {
			continue
		}
		p.MAD.Respond(mad.StatusOK)
		if err := mad.Encode(p.MAD.Data(), &r.says); err != nil {
			t.Fatal(err)
		}
		r.st.Send(p)
	}
}
