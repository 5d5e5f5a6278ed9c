package admission

import (
	"errors"
	"strings"
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/review"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// When the review of a restored state ends, an adopted membership is kept only where the switch port has it in the same form.
func TestReviewDropsAdoptedThatIsNotFound(t *testing.T) {
	l := restored(t)
	at := func(port ib.PortNum) ib.Place { return ib.Place{Switch: 0x10, Port: port} }
	there, limited, elsewhere, unseen := records.Key{PKey: 6, GUID: 3, Place: at(3)}, records.Key{PKey: 7, GUID: 4, Place: at(4)},
		records.Key{PKey: 6, GUID: 5, Place: at(5)}, records.Key{PKey: 6, GUID: 6, Place: at(6)}
	_, err := l.store.Update(l.ctx(), func(tx *store.Tx) error {
		var errs []error
		for _, k := range []records.Key{there, limited, elsewhere, unseen} {
			errs = append(errs, records.Grants().Put(tx, k.String(), records.Grant{Adopted: "adoption-0001"}))
		}
		for port, k := range map[ib.PortNum]ib.PKey{4: 0x0007, 5: 0x8007} {
			f := review.Found{Place: at(port), Switch: "leaf-1", GUID: ib.GUID(port), Node: "node", PKeys: []ib.PKey{k}}
			errs = append(errs, review.Tables().Put(tx, f.Place.String(), f))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.svc.Reject(l.ctx(), "ann", v1.ReviewDecision{All: true, Reason: "seen"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.svc.EndReview(l.ctx(), "ann", v1.ReviewEnd{Reason: "seen", Strip: true}); err != nil {
		t.Fatal(err)
	}
	for k, kept := range map[records.Key]bool{there: true, limited: false, elsewhere: false, unseen: false} {
		g, err := records.Grants().Get(l.ctx(), l.store, k.String())
		if err != nil || g.Value.Withdrawn == kept || g.Value.Adopted == "" {
			t.Errorf("%v: %+v, %v; want it kept: %v", k, g.Value, err, kept)
		}
	}
}

// A host that is rejected loses what its ports have by adoption, also where it is in no cluster and the switch port has the P_Key.
func TestRejectEndsAdopted(t *testing.T) {
	l := restored(t)
	k := records.Key{PKey: 5, GUID: 2, Place: ib.Place{Switch: 0x10, Port: 2}} // of h2
	if _, err := l.store.Update(l.ctx(), func(tx *store.Tx) error {
		return errors.Join(
			records.Grants().Put(tx, k.String(), records.Grant{Adopted: "adoption-0001"}),
			records.Adoptions().Put(tx, k.String(), records.Adopted{Adoption: "adoption-0001"}),
		)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.svc.Reject(l.ctx(), "ann", v1.ReviewDecision{Hosts: []string{"h2"}, Reason: "it is not known"}); err != nil {
		t.Fatal(err)
	}
	if g, err := records.Grants().Get(l.ctx(), l.store, k.String()); err != nil || !g.Value.Withdrawn || g.Value.Adopted == "" {
		t.Errorf("%+v, %v; want it withdrawn", g.Value, err)
	}
}

// An import may name a port that is adopted where it is, and not elsewhere, nor another port at its place.
func TestImportLeavesAdoptedPortsWhereTheyAre(t *testing.T) {
	for _, tt := range []struct {
		name string
		port ib.GUID
		at   ib.PortNum
		want string
	}{
		{"as inventory has it", card + 1, 1, ""},
		{"of no host", 0x7701, 40, ""},
		{"the port elsewhere", card + 1, 9, "adopted with P_Key 0x0006 at 0x0000000000000010/9 (adoption-0001)"},
		{"another port at the place", 0x7701, 1, "adopted with P_Key 0x0006 at 0x0000000000000010/1 (adoption-0001)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, member.Open(t))
			h, err := l.vendor.NewHost("host-1", 1)
			if err != nil {
				t.Fatal(err)
			}
			l.hosts["host-1"] = h
			k := records.Key{PKey: 6, GUID: tt.port, Place: ib.Place{Switch: 0x10, Port: tt.at}}
			if _, err := l.store.Update(l.ctx(), func(tx *store.Tx) error {
				return records.Grants().Put(tx, k.String(), records.Grant{Adopted: "adoption-0001"})
			}); err != nil {
				t.Fatal(err)
			}
			out := l.importText("hosts:\n"+l.declare("host-1", card, 1), false)
			if refused := strings.HasPrefix(out, "conflict, host_locked"); refused != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("got %s\nwant it to contain %q", out, tt.want)
			}
		})
	}
}
