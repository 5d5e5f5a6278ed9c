package proving_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/receipts"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/vault"
)

// site is a fabric that the Subnet Manager set, with M_Keys, and the records of the service: red has h1 and h3, blue has h2 and h4.
type site struct {
	*proving.Prover
	stage  *testbed.Stage
	store  *store.Store
	stored *driver.Memory
	log    strings.Builder
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := runningSite(t)
	s.stage.Crash()
	return s
}

// runningSite is a site whose Subnet Manager still runs.
func runningSite(t *testing.T) *site {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	return siteOf(t, l, map[string]string{"h1": "red", "h2": "blue", "h3": "red", "h4": "blue"}, map[string]ib.PKey{"red": 0x8101, "blue": 0x8202})
}

// siteOf is a site of a fabric, with the tenants of hosts and their P_Keys.
func siteOf(t testing.TB, l *netlist.Netlist, tenants map[string]string, pkeys map[string]ib.PKey, change ...func(*testbed.Options)) *site {
	t.Helper()
	master, err := keys.DrawMaster(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o := testbed.Options{Netlist: l, Manager: "sm"}
	o.SM.MKey = mkeys.Config{Source: keys.Derived{Master: master}, Places: keyplace.Seen}
	for _, c := range change {
		c(&o)
	}
	s := &site{store: store.New(memory.New(time.Now), ""), stored: &driver.Memory{}}
	if s.stage, err = testbed.New(o); err != nil {
		t.Fatal(err)
	}
	var grants []sm.Grant
	_, err = s.store.Update(context.Background(), func(tx *store.Tx) error {
		for i := range l.Nodes {
			n := &l.Nodes[i]
			if n.Type == ib.NodeSwitch {
				err = inventory.Switches().Put(tx, n.Name, inventory.Switch{ID: n.Name, GUID: n.GUID})
			} else if n.Name != "sm" {
				g := s.stage.GrantOf(n.Name, 1, 0)
				port := inventory.Port{Num: 1, GUID: g.GUID, Cable: g.Place}
				err = inventory.Hosts().Put(tx, n.Name, inventory.Host{ID: n.Name, HCAs: []inventory.HCA{{NodeGUID: n.GUID, Ports: []inventory.Port{port}}}})
			}
			if err != nil {
				return err
			}
		}
		for host, tenant := range tenants {
			g := s.stage.GrantOf(host, 1, pkeys[tenant])
			grants = append(grants, g)
			if err := s.grant(tx, &g, host, tenant); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.stage.Start()
	s.stage.Want(sm.Intent{Revision: 1, Grants: grants})
	if err := s.stage.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	root, err := vault.NewRoot("test", []byte(strings.Repeat("0123456789abcdef", 2)))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := keystore.Open(s.stored, root, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := sealed.Save(s.stage.Facts()); err != nil {
		t.Fatal(err)
	}
	s.Prover = proving.New(proving.Options{
		Store: s.store, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Now: time.Now, Sealed: s.stored.Load,
		Open:     func(context.Context) (transport.Port, error) { return s.stage.Fabric.Attach("sm", false) },
		Root:     func() (vault.Root, error) { return root, nil },
		Topology: func(context.Context) (*topospec.Spec, error) { return nil, nil },
		Timeout:  5 * time.Second,
		SealedIn: "facts/", // nothing writes there: the facts are beside the store
	})
	return s
}

func (s *site) grant(tx *store.Tx, g *sm.Grant, host, tenant string) error {
	name := records.Key{PKey: g.PKey.Base(), GUID: g.GUID, Place: g.Place}
	return records.Grants().Put(tx, name.String(), records.Grant{Host: host, Tenant: tenant})
}

// Devices that answer no caller without their M_Keys are read by the stored ones.
func TestProvesBehindKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if key := s.stage.Fabric.PortInfo("h1", 1); key.MKey.IsZero() || key.MKeyProtectBits != 2 {
		t.Fatalf("h1 has a key: %v, and level %d", !key.MKey.IsZero(), key.MKeyProtectBits)
	}
	got, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict != v1.Isolated || got.Pairs.Isolated != 3 || len(got.Unread) > 0 || got.Bounds.Devices != len(s.stage.List.Nodes) || got.Bounds.Ended.Before(got.Bounds.Begun) {
		t.Errorf("verdict %v (%v), pairs %+v, unread %v, bounds %+v", got.Verdict, got.Reason, got.Pairs, got.Unread, got.Bounds)
	}
	if said := s.log.String(); !strings.Contains(said, "actor=olga") || !strings.Contains(said, "verdict=isolated") {
		t.Errorf("the log says %q", said)
	}
	last, at := s.Last()
	if last != got || !at.Equal(got.Bounds.Begun) {
		t.Errorf("the last examination of all tenants is %+v of %v", last, at)
	}
	one, err := s.Prove(t.Context(), "olga", v1.IsolationQuery{Tenant: "red"})
	if err != nil || one.Tenant != "red" || one.Pairs.Isolated != 2 {
		t.Errorf("of red: %+v, %v", one, err)
	}
	if now, _ := s.Last(); now != last {
		t.Error("what was asked about one tenant counts as an examination of all")
	}
	s.Root = nil
	got, err = s.Prove(t.Context(), "olga", v1.IsolationQuery{})
	if err != nil || got.Verdict != v1.IsolationUnknown || got.Pairs.Isolated > 0 || len(got.Unread) == 0 {
		t.Errorf("without keys: %+v, %v", got, err)
	}
}

// Requests that share a reading get one that is not old, of what is declared now. What is found of one tenant is found of all.
func TestExamine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opened, open := 0, s.Open
	s.Open = func(ctx context.Context) (transport.Port, error) { opened++; return open(ctx) }
	now := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	s.Now = func() time.Time { return now }
	examine := func(tenant string, shared bool, reads int) *receipts.Examined {
		t.Helper()
		before := opened
		out, err := s.Examine(t.Context(), v1.IsolationQuery{Tenant: tenant, Membership: true}, shared)
		if err != nil {
			t.Fatal(err)
		}
		if opened-before != reads {
			t.Errorf("tenant %q, shared %t: the fabric was read %d times, want %d", tenant, shared, opened-before, reads)
		}
		return out
	}
	all := examine("", false, 1)
	red := examine("red", true, 0)
	if all.Detail.Report.Verdict != v1.Isolated || red.Detail.Report.Verdict != v1.Isolated || red.Detail.Report.Tenant != "red" || len(red.Detail.Ports) != 2 ||
		all.Detail.Digest != red.Detail.Digest || !red.Records.Equal(now) {
		t.Errorf("of all %+v, of red %+v", all.Detail.Report, red.Detail)
	}
	if len(all.Epochs) == 0 || all.Epochs[0].Kind != "m_key" || all.Epochs[0].Epoch == 0 || all.Topology.Digest != "" {
		t.Errorf("epochs %+v, topology %+v", all.Epochs, all.Topology)
	}
	examine("blue", false, 1)
	now = now.Add(4 * time.Minute)
	examine("blue", true, 0)
	now = now.Add(time.Minute)
	examine("blue", true, 1)
	_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
		g := s.stage.GrantOf("h5", 1, 0x8101)
		return s.grant(tx, &g, "h5", "red")
	})
	if err != nil {
		t.Fatal(err)
	}
	if red := examine("red", true, 1); len(red.Detail.Ports) != 3 {
		t.Errorf("after a grant: %+v", red.Detail.Ports)
	}
	// A reading under another assumption is not shared.
	if out, err := s.Examine(t.Context(), v1.IsolationQuery{}, true); err != nil || opened != 5 {
		t.Errorf("without the assumption the fabric was read %d times in all: %+v, %v", opened, out, err)
	}
}

// wait is a port that waits before it sends anything.
type wait struct {
	transport.Port
	begun, on chan struct{}
}

func (w *wait) Send(p []transport.Packet) (int, error) {
	if w.begun != nil {
		close(w.begun)
		w.begun = nil
		<-w.on
	}
	return w.Port.Send(p)
}

// A request is refused while the fabric is read for another one, and what changed meanwhile is not judged.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := &wait{begun: make(chan struct{}), on: make(chan struct{})}
	begun, open := w.begun, s.Open
	s.Open = func(ctx context.Context) (_ transport.Port, err error) {
		w.Port, err = open(ctx)
		return w, err
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Prove(t.Context(), "", v1.IsolationQuery{})
		done <- err
	}()
	<-begun
	_, err := s.Prove(t.Context(), "", v1.IsolationQuery{})
	if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != "verify_running" || e.Status != refusal.Conflict {
		t.Errorf("a second request: %v", err)
	}
	_, err = s.store.Update(t.Context(), func(tx *store.Tx) error {
		g := s.stage.GrantOf("h5", 1, 0x8101)
		return s.grant(tx, &g, "h5", "red")
	})
	if err != nil {
		t.Fatal(err)
	}
	close(w.on)
	if e, ok := errors.AsType[*refusal.Error](<-done); !ok || e.Code != "changed_meanwhile" {
		t.Errorf("a grant changed while the fabric was read: %v", e)
	}
}

// Where the fabric is not read, there is no verdict.
func TestNoVerdict(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		set  func(s *site)
		q    v1.IsolationQuery
		code string
	}{
		"unknown tenant":  {func(*site) {}, v1.IsolationQuery{Tenant: "green"}, "tenant_unknown"},
		"no port":         {func(s *site) { s.Open = func(context.Context) (transport.Port, error) { return nil, broken } }, v1.IsolationQuery{}, "fabric_unread"},
		"no keys":         {func(s *site) { s.Sealed = func() ([]sm.Fact, error) { return nil, broken } }, v1.IsolationQuery{}, "fabric_unread"},
		"another root":    {func(s *site) { s.Root = func() (vault.Root, error) { return vault.NewRoot("x", make([]byte, 32)) } }, v1.IsolationQuery{}, "fabric_unread"},
		"own port silent": {func(s *site) { silence(s.stage.Fabric) }, v1.IsolationQuery{}, "fabric_unread"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.Log, s.Timeout = slog.New(slog.NewTextHandler(io.Discard, nil)), 10*time.Millisecond
			test.set(s)
			got, err := s.Prove(t.Context(), "", test.q)
			if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != test.code || e.Hint == "" || got != nil {
				t.Errorf("got %+v, %v, want %s", got, err, test.code)
			}
		})
	}
}

func silence(f *sim.Fabric) { _ = f.SetFault("sm", sim.Fault{Silent: true}) }
