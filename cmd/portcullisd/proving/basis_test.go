package proving_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/etcd/etcdtest"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/topospec"
)

// other is a collection that nothing is declared in.
func other() store.Collection[struct{}] { return store.NewCollection[struct{}]("grants-beside", 1) }

// writes are writes of everything that is declared.
var writes = []struct {
	name  string
	read  bool // all records are read again
	write func(tx *store.Tx) error
}{
	{"a new switch", true, func(tx *store.Tx) error {
		return inventory.Switches().Put(tx, "s", inventory.Switch{ID: "s", GUID: 0x10})
	}},
	{"a new host", true, func(tx *store.Tx) error { return inventory.Hosts().Put(tx, "h", declaredHost(0x31)) }},
	{"another GUID of it", true, func(tx *store.Tx) error { return inventory.Hosts().Put(tx, "h", declaredHost(0x32)) }},
	{"a grant", false, func(tx *store.Tx) error {
		return records.Grants().Put(tx, grantKey, records.Grant{Host: "h", Tenant: "red"})
	}},
	{"a grant that is withdrawn", false, func(tx *store.Tx) error {
		return records.Grants().Put(tx, grantKey, records.Grant{Host: "h", Tenant: "red", Withdrawn: true})
	}},
	{"the same grant", false, func(tx *store.Tx) error {
		return records.Grants().Put(tx, grantKey, records.Grant{Host: "h", Tenant: "red", Withdrawn: true})
	}},
	{"no grant", false, func(tx *store.Tx) error { records.Grants().Delete(tx, grantKey); return nil }},
	{"a grant of a port that no host has", true, func(tx *store.Tx) error {
		return records.Grants().Put(tx, strangeKey, records.Grant{Host: "g", Tenant: "red"})
	}},
	{"a grant and a site", true, func(tx *store.Tx) error {
		if err := inventory.Sites().Put(tx, "another", inventory.Site{}); err != nil {
			return err
		}
		return records.Grants().Put(tx, grantKey, records.Grant{Host: "h", Tenant: "blue"})
	}},
	{"something else", false, func(tx *store.Tx) error { return other().Put(tx, "x", struct{}{}) }},
	{"a site", true, func(tx *store.Tx) error { return inventory.Sites().Put(tx, "site", inventory.Site{}) }},
	{"a rack", true, func(tx *store.Tx) error { return inventory.Racks().Put(tx, "rack", inventory.Rack{}) }},
	{"an adapter", true, func(tx *store.Tx) error { return inventory.Adapters().Put(tx, "adapter", inventory.Adapter{}) }},
	{"a trunk", true, func(tx *store.Tx) error { return inventory.Trunks().Put(tx, "trunk", inventory.Trunk{}) }},
	{"which topology is in force", true, func(tx *store.Tx) error { return topology.Heads().Put(tx, "head", topology.Head{}) }},
	{"a revision", true, func(tx *store.Tx) error { return topology.Entries().Put(tx, "1", topology.Entry{}) }},
	{"a content", true, func(tx *store.Tx) error { return topology.Contents().Put(tx, "x", topology.Content{}) }},
	{"no host", true, func(tx *store.Tx) error { inventory.Hosts().Delete(tx, "h"); return nil }},
	{"no switch", true, func(tx *store.Tx) error { inventory.Switches().Delete(tx, "s"); return nil }},
}

var grantKey = records.Key{PKey: 0x101, GUID: 0x32, Place: ib.Place{Switch: 0x10, Port: 1}}.String()

var strangeKey = records.Key{PKey: 0x101, GUID: 0x99, Place: ib.Place{Switch: 0x10, Port: 2}}.String()

func declaredHost(port ib.GUID) inventory.Host {
	ports := []inventory.Port{{Num: 1, GUID: port, Cable: ib.Place{Switch: 0x10, Port: 1}}}
	return inventory.Host{ID: "h", HCAs: []inventory.HCA{{NodeGUID: 0x30, Ports: ports}}}
}

// declarations is a service that follows the records, and another instance that writes them.
type declarations struct {
	*proving.Prover
	t          *testing.T
	theirs     *store.Store
	loads      int // how often the records were read
	broken     error
	configured *topospec.Spec
}

func newDeclarations(t *testing.T, ours, theirs *store.Store) *declarations {
	t.Helper()
	d := &declarations{t: t, theirs: theirs}
	d.Prover = proving.New(proving.Options{
		Store: ours, Log: storetest.Quiet(), Now: time.Now, Configured: func() *topospec.Spec { return d.configured },
		Topology: func(context.Context) (*topospec.Spec, error) { d.loads++; return nil, d.broken },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { d.FollowRecords(ctx) })
	t.Cleanup(func() { cancel(); run.Wait() })
	return d
}

// fresh returns what is declared, by nothing but the records.
func (d *declarations) fresh() *isolation.Intent {
	d.t.Helper()
	snap, err := d.theirs.Snapshot(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	var r isolation.Records
	if r.Inventory, err = inventory.Load(d.t.Context(), snap); err != nil {
		d.t.Fatal(err)
	}
	if r.Grants, _, err = records.Grants().List(d.t.Context(), snap, ""); err != nil {
		d.t.Fatal(err)
	}
	in, err := isolation.NewIntent(r)
	if err != nil {
		d.t.Fatal(err)
	}
	return in
}

// current returns what is declared, and requires that it is true.
func (d *declarations) current(what string) *isolation.Intent {
	d.t.Helper()
	in, err := d.Current(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	if !in.Equal(d.fresh()) {
		d.t.Errorf("after %s: what is declared is not known", what)
	}
	return in
}

func (d *declarations) write(do func(tx *store.Tx) error) {
	d.t.Helper()
	if _, err := d.theirs.Update(d.t.Context(), do); err != nil {
		d.t.Fatal(err)
	}
}

// Each write to what is declared is noticed, by whatever instance, and records are not read where none was. What is still the same is the same
// Intent, so that a proof by it can be built on.
func TestNoticesWhatIsDeclared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		d := newDeclarations(t, s, s.Twin())
		synctest.Wait()
		was := d.current("the start")
		for _, w := range writes {
			before := d.loads
			d.write(w.write)
			now := d.current(w.name)
			if d.loads-before != map[bool]int{true: 1}[w.read] {
				t.Errorf("after %s the records were read %d times", w.name, d.loads-before)
			}
			if again := d.current(w.name); again != now || d.loads-before > 1 {
				t.Errorf("after %s the records were read twice", w.name)
			}
			if same := now.Equal(was); same != (now == was) {
				t.Errorf("after %s the same is declared: %t, by the same Intent: %t", w.name, same, now == was)
			}
			was = now
		}
		before := d.loads
		d.configured = &topospec.Spec{}
		if d.current("another configuration"); d.loads != before+1 {
			t.Errorf("after another topology of the configuration the records were read %d times", d.loads-before)
		}
	})
}

// Where the declared topology cannot be read, nothing is declared; and that is not kept.
func TestUnreadableTopology(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		d := newDeclarations(t, s, s.Twin())
		synctest.Wait()
		d.broken = errors.New("no store")
		if in, err := d.Current(t.Context()); !errors.Is(err, d.broken) || in != nil {
			t.Errorf("got %v, %v", in, err)
		}
		d.broken = nil
		d.current("it can be read again")
	})
}

// All collections that Intents are made of are among those that the writes of the tests are to.
func TestWritesAreOfAllThatIsDeclared(t *testing.T) {
	t.Parallel()
	s := store.New(memory.New(time.Now), "")
	for _, w := range writes {
		if _, err := s.Update(t.Context(), w.write); err != nil {
			t.Fatal(err)
		}
	}
	changes := s.Watch(t.Context(), "", 0)
	written := map[string]bool{}
	for len(written) < len(proving.Declaring()) {
		select {
		case c := <-changes:
			for i := range c.Changes {
				for _, name := range proving.Declaring() {
					if strings.HasPrefix(c.Changes[i].Key, name) {
						written[name] = true
					}
				}
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("only these were written to: %v", written)
		}
	}
}

// What another instance writes to a real etcd is known to the next who asks.
func TestNoticesWhatIsDeclaredOverEtcd(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	open := func() *store.Store {
		s, err := etcd.Open(t.Context(), etcd.Options{Remote: c.Remote(), Log: storetest.Quiet()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	d := newDeclarations(t, open(), open())
	d.current("the start")
	for _, w := range writes {
		d.write(w.write)
		d.current(w.name)
		d.current(w.name)
	}
	if d.loads < len(writes)/2 {
		t.Errorf("the records were read %d times after %d writes", d.loads, len(writes))
	}
}

// A P_Key that moves is found in the proof as by a proof of everything: verdict, pairs, ports, drift, outsiders.
func TestCatchesUpAsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: 100 * time.Hour, Rate: 1000}, nil)
		defer s.stop()
		s.after(10 * time.Minute)
		at := 10 * time.Minute
		for i, change := range []func(){
			func() { s.stage.Grant(s.stage.GrantOf("h1", 1, 0x8202)) },
			func() { s.stage.Grant(s.stage.GrantOf("h2", 1, 0x8777)) },
			func() { s.stage.Withdraw(s.stage.GrantOf("h1", 1, 0x8202)) },
			func() { s.stage.Grant(s.stage.GrantOf("h3", 1, 0x0202)) },
			func() { s.stage.Withdraw(s.stage.GrantOf("h3", 1, 0x0202)) },
			func() { s.stage.Withdraw(s.stage.GrantOf("h2", 1, 0x8777)) },
		} {
			s.manage(change)
			at += time.Minute
			s.after(at)
			found := s.found()
			if found.Bounds.Again == nil || found.Bounds.Requests > 24 {
				t.Errorf("change %d: bounds %+v", i, found.Bounds)
			}
			ports, drift := s.rows()
			if _, err := s.Prove(t.Context(), "", v1.IsolationQuery{}); err != nil {
				t.Fatal(err)
			}
			whole := *s.found()
			allPorts, allDrift := s.rows()
			whole.Bounds, whole.Examples = found.Bounds, found.Examples
			if !reflect.DeepEqual(&whole, found) || !reflect.DeepEqual(ports, allPorts) || !reflect.DeepEqual(drift, allDrift) {
				t.Errorf("change %d: %+v, %v, %v; of everything %+v, %v, %v", i, found, ports, drift, whole, allPorts, allDrift)
			}
		}
	})
}

// rows returns what is said of ports, and how their tables differ from memberships.
func (s *seenSite) rows() ([]v1.IsolationPortVerdict, []v1.Drift) {
	s.t.Helper()
	ports, err := s.Ports(s.t.Context(), v1.IsolationPortQuery{})
	if err != nil {
		s.t.Fatal(err)
	}
	drift, err := s.Drift(s.t.Context(), v1.DriftQuery{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range drift.Items {
		drift.Items[i].Since = time.Time{}
	}
	return ports.Items, drift.Items
}

// What was not read is asked for again with the tables that were touched, but not more often than once a minute: the fabric is walked for it.
func TestAsksAgainForWhatWasNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: 100 * time.Hour, Rate: 1000}, func(s *seenSite) {
			if err := s.stage.Fabric.SetFault("h4", sim.Fault{Silent: true}); err != nil {
				t.Fatal(err)
			}
		})
		defer s.stop()
		at := 10 * time.Minute
		s.after(at)
		for i, step := range []struct {
			pause time.Duration
			walks bool
		}{{time.Minute, true}, {20 * time.Second, false}, {20 * time.Second, false}, {2 * time.Minute, true}, {20 * time.Second, false}} {
			if at += step.pause; step.walks {
				s.after(at)
			}
			s.manage(func() { s.stage.Grant(s.stage.GrantOf("h1", 1, ib.PKey(0x8300+i))) })
			at += 10 * time.Second
			s.after(at)
			b := &s.found().Bounds
			if b.Unread == 0 || b.Again == nil || b.Requests > 16 != step.walks {
				t.Errorf("change %d: it took %d requests, %d values were not read, read again at %v", i, b.Requests, b.Unread, b.Again)
			}
		}
	})
}
