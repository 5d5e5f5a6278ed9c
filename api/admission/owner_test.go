package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// silentlyReleased returns a lab in which host-1 was admitted to c1 and released, and its switch ports were read back
// clear, but its HCA does not answer: its grants stand, withdrawn. host-2 is a chassis that is not in inventory and has
// host-1's card.
func silentlyReleased(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, member.Open(t))
	l.addHosts(1)
	l.tenantWithClusters("c1")
	l.admit("host-1", "c1")
	l.silence("host-1", true)
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	l.fabric.program(t)
	l.settle()
	if p := l.host("host-1").Status.Phase; p != v1.PhaseQuarantined {
		t.Fatalf("host-1 is %s, want quarantined", p)
	}
	other, err := l.vendor.NewHost("host-2", 1)
	if err != nil {
		t.Fatal(err)
	}
	l.hosts["host-2"] = other
	return l
}

func (l *lab) silence(host string, silent bool) {
	for _, p := range l.ports(host) {
		l.fabric.silent[p.GUID] = silent
	}
}

// declare is an inventory line of a host with one HCA of two ports, whose port
// GUIDs follow the node GUID, cabled to switch 0x10 from port first on.
func (l *lab) declare(id string, node uint64, first int) string {
	return fmt.Sprintf("- {id: %s, ek_sha256: %s, hcas: [{node_guid: 0x%x, ports: [{port: 1, guid: 0x%x, cable: 0x10/%d}, {port: 2, guid: 0x%x, cable: 0x10/%d}]}]}\n",
		id, l.hosts[id].EKDigest(), node, node+1, first, node+2, first+1)
}

const card = 0x2c90300000100 // node GUID of host-1's HCA

func TestImportLeavesStandingGrantsTheirOwner(t *testing.T) {
	for _, c := range []struct {
		name string
		give func(l *lab) string
		want string // in the answer; "": imported
	}{
		{"card to another host", func(l *lab) string {
			return l.declare("host-1", 0x9900, 11) + l.declare("host-2", card, 1)
		}, "host host-2: port 0x0002c90300000101 is not yet proven without P_Key 0x0001, which host host-1 was granted"},
		{"cables to another host", func(l *lab) string {
			return l.declare("host-1", card, 11) + l.declare("host-2", 0x9900, 1)
		}, "host host-2: the port 0x0002c90300000101 that was at 0x0000000000000010/1 is not yet proven"},
		{"card out of inventory", func(l *lab) string { return l.declare("host-1", 0x9900, 1) }, ""},
		{"a host of its own", func(l *lab) string { return l.declare("host-2", 0x9900, 11) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := silentlyReleased(t)
			out := l.importText("hosts:\n"+c.give(l), false)
			if refused := strings.HasPrefix(out, "conflict, host_locked"); refused != (c.want != "") || !strings.Contains(out, c.want) {
				t.Errorf("got %s\nwant it to contain %q", out, c.want)
			}
		})
	}
}

// Also in two steps the card keeps its owner, until it was read back.
func TestCardMovesOnceProven(t *testing.T) {
	l := silentlyReleased(t)
	if out := l.importText("hosts:\n"+l.declare("host-1", 0x9900, 11), false); !strings.HasPrefix(out, "added []") {
		t.Fatal(out)
	}
	again := "hosts:\n" + l.declare("host-2", card, 1)
	if out := l.importText(again, false); !strings.HasPrefix(out, "conflict, host_locked") {
		t.Errorf("while the grant stands: %s", out)
	}
	clear(l.fabric.silent)
	l.fabric.program(t)
	l.settle()
	if out := l.importText(again, false); !strings.HasPrefix(out, "added [host-2]") {
		t.Errorf("after the card was read back: %s", out)
	}
}

// sharedCard returns silentlyReleased's lab with an inventory in which the card is already host-2's, as no import would
// make it. Both hosts would have the same grants.
func sharedCard(t *testing.T) *lab {
	t.Helper()
	l := silentlyReleased(t)
	rec, err := inventory.Hosts().Get(t.Context(), l.store, "host-1")
	if err != nil {
		t.Fatal(err)
	}
	one, two := rec.Value, rec.Value
	one.HCAs = nil
	two.ID, two.EK = "host-2", l.hosts["host-2"].EKDigest()
	l.write(func(tx *store.Tx) error {
		return errors.Join(inventory.Hosts().Put(tx, "host-1", one), inventory.Hosts().Put(tx, "host-2", two))
	})
	l.must(l.svc.Assign(t.Context(), "alice", "host-2", v1.Assignment{Cluster: "c1"}))
	l.fabric.place(t, l.ports("host-2")...)
	if _, err := l.attest("host-2"); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) write(fn func(tx *store.Tx) error) {
	l.t.Helper()
	if _, err := l.store.Update(l.ctx(), fn); err != nil {
		l.t.Fatal(err)
	}
}

// owners lists "HOST" or "HOST withdrawn" of every grant in the ledger.
func (l *lab) owners() []string {
	l.t.Helper()
	grants, _, err := records.Grants().List(l.ctx(), l.store, "")
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, g := range grants {
		state := ""
		if g.Value.Withdrawn {
			state = " withdrawn"
		}
		out = append(out, g.Value.Host+state)
	}
	return out
}

func (l *lab) wantOwners(when string, want ...string) {
	l.t.Helper()
	if got := l.owners(); !slices.Equal(got, want) {
		l.t.Errorf("%s: grants of %v, want %v", when, got, want)
	}
}

func TestGrantHasOneOwner(t *testing.T) {
	l := sharedCard(t)
	l.settle()
	l.wantOwners("while host-1's grants stand", "host-1 withdrawn", "host-1 withdrawn")
	h := l.host("host-2")
	if d := h.Status.Guards[5].Detail; h.Status.Phase != v1.PhaseVerified || !strings.Contains(d, "is still that of host host-1") {
		t.Errorf("host-2 is %s with capacity %q, want verified and host-1 named", h.Status.Phase, d)
	}
	clear(l.fabric.silent)
	l.fabric.program(t)
	l.settle() // lets go of host-1's
	l.settle() // assigns them to host-2
	l.wantOwners("after the card was read back", "host-2", "host-2")
	l.fabric.program(t)
	l.settle()
	l.wantOwners("after programming", "host-2", "host-2")
	if p := l.host("host-2").Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("host-2 is %s, want admitted", p)
	}
}

// Run brings the waiting host on by itself when the other's grants go.
func TestRunPassesAGrantOn(t *testing.T) {
	l := sharedCard(t)
	l.running()
	l.until("host-2", v1.PhaseVerified)
	clear(l.fabric.silent)
	l.fabric.program(t)
	l.until("host-2", v1.PhaseGranting)
}

// A record may name grants that the ledger has for another host, or not at
// all. Neither is touched, and neither wedges the host.
func TestStrayGrants(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(tx *store.Tx, key string, g records.Grant) error
		want  []string
	}{
		{"of another host", func(tx *store.Tx, key string, g records.Grant) error {
			g.Host = "host-2"
			return records.Grants().Put(tx, key, g)
		}, []string{"host-2", "host-2"}},
		{"gone", func(tx *store.Tx, key string, _ records.Grant) error {
			records.Grants().Delete(tx, key)
			return nil
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, member.Open(t))
			l.addHosts(2)
			l.tenantWithClusters("c1")
			l.admit("host-1", "c1")
			l.write(func(tx *store.Tx) error {
				grants, _, err := records.Grants().List(t.Context(), tx, "")
				for _, g := range grants {
					err = errors.Join(err, c.spoil(tx, g.Key, g.Value))
				}
				return err
			})
			l.must(l.svc.Host(t.Context(), "host-1"))
			l.must(l.svc.Release(t.Context(), "alice", "host-1"))
			l.wantOwners("after release", c.want...)
			l.fabric.program(t)
			l.settle()
			l.wantOwners("after programming", c.want...)
			if p := l.host("host-1").Status.Phase; p != v1.PhaseQuarantined {
				t.Errorf("host-1 is %s, want quarantined", p)
			}
		})
	}
}

func TestOneHostHoldsUpNoOther(t *testing.T) {
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("c1")
	for _, h := range []string{"host-1", "host-2"} {
		l.must(l.svc.Assign(t.Context(), "alice", h, v1.Assignment{Cluster: "c1"}))
		if _, err := l.attest(h); err != nil {
			t.Fatal(err)
		}
		l.fabric.place(t, l.ports(h)...)
	}
	l.write(func(tx *store.Tx) error {
		rec, err := hostrecord.Records().Get(t.Context(), tx, "host-1")
		rec.Value.Grants = []string{"not a grant"}
		return errors.Join(err, hostrecord.Records().Put(tx, "host-1", rec.Value))
	})
	o := newOwners()
	err := l.svc.settleSome(t.Context(), o, []string{"host-1", "host-2"})
	if err == nil || !strings.Contains(err.Error(), "host host-1") {
		t.Errorf("got %v, want an error about host-1", err)
	}
	l.wantOwners("after host-1 failed", "host-2", "host-2")
	if due := o.due(l.clock.Add(retryPause)); !slices.Equal(due, []string{"host-1"}) {
		t.Errorf("due for another try: %v, want host-1", due)
	}
}
