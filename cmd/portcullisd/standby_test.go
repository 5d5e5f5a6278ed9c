package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/instances"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/topology"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport/ibsim"
)

// standbyRig is an instance at the adapter of a host, on a fabric that another instance has
// settled and whose facts are in the store.
type standbyRig struct {
	t       *testing.T
	fab     *sim.Fabric
	cut     func() // takes the adapter away
	service *service
	standby *standby
	ended   chan error // of read
}

const standbyNode = "h1"

func newStandbyRig(t *testing.T) *standbyRig {
	t.Helper()
	list, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 8})
	must(t, err)
	r := &standbyRig{t: t, fab: sim.New(list), ended: make(chan error, 1)}
	client, stop := simtest.ServeUntil(t, r.fab)
	stopped := false
	r.cut = func() {
		if !stopped {
			stopped = true
			stop()
		}
	}
	t.Cleanup(r.cut)

	st := store.New(memory.New(time.Now), "")
	c := defaultConfig()
	c.Fabric.Port = "ibsim:" + client.Socket + "/" + standbyNode
	log := slog.New(slog.DiscardHandler)
	r.service = &service{config: c, parts: &parts{}, store: st, log: log, status: newStatus(func(string) {})}
	r.service.topospec = topology.New(topology.Options{Store: st, Log: log, FromFile: r.service.topologyFromFile})
	r.standby = newStandby(r.service)
	for _, node := range []string{"sm", standbyNode} {
		at := list.Find(node).Ports[1]
		must(t, instances.Update(t.Context(), st, node, time.Now(), func(i *instances.Instance) {
			i.Port, i.Place = list.Find(node).PortGUID(1), ib.Place{Switch: list.Find(at.Peer).GUID, Port: at.PeerPort}
		}))
	}

	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: client.Socket, Node: "sm", AsSM: true})
	must(t, err)
	must(t, driver.Run(t.Context(), driver.Options{
		Port: port, Store: fabric.New(fabric.Options{Store: st, Log: log}), Core: r.core(), Until: driver.UntilSettled,
	}, nothing()))
	return r
}

// nothing is an intent that grants nothing.
func nothing() <-chan sm.Intent {
	c := make(chan sm.Intent, 1)
	c <- sm.Intent{Revision: 1}
	return c
}

// core is the configuration of a core in a term.
func (r *standbyRig) core() sm.Config {
	r.t.Helper()
	core := r.service.withDeclared(r.t.Context(), r.service.core())
	core.IntentWait, core.MKey.Rotation.Succeeds = intentWait, true
	must(r.t, r.service.withSiblings(r.t.Context(), &core))
	return core
}

// reads has the instance read along, and waits until it has read the fabric.
func (r *standbyRig) reads() {
	r.t.Helper()
	go func() {
		_, err := r.standby.read(r.t.Context())
		r.ended <- err
	}()
	eventually(r.t, "the fabric is read", func() (bool, string) { return r.standby.complete(), "not complete" })
}

// end waits for the end of reading, and requires that nothing is left of what was read.
func (r *standbyRig) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.standby.mu.Lock()
		defer r.standby.mu.Unlock()
		if r.standby.under != nil || r.standby.ready != nil {
			r.t.Error("what was read is kept")
		}
		return err
	case <-time.After(patience):
		r.t.Fatal("it reads on")
		return nil
	}
}

// term begins a term, and returns what was read, nil if it is not used, and the facts.
func (r *standbyRig) term(core sm.Config) (*reading, *loadedOnce) {
	r.t.Helper()
	r.standby.hold()
	snap, err := r.service.store.Snapshot(r.t.Context())
	must(r.t, err)
	link := fabric.New(fabric.Options{Store: r.service.store, Log: r.service.log})
	facts := &loadedOnce{Store: link}
	r.standby.know(r.t.Context(), snap.Revision, link, facts)
	read, err := r.standby.take(facts, &core)
	must(r.t, err)
	return read, facts
}

// save saves facts as the leader does.
func (r *standbyRig) save(facts ...sm.Fact) {
	r.t.Helper()
	must(r.t, fabric.SaveFacts(r.t.Context(), r.service.store, facts))
}

// TestStandbyReads: a term begins with what the instance has read before, and with facts of
// its own beginning that were not loaded again. It writes where the Subnet Manager is, and
// nothing else; standing by it wrote nothing.
func TestStandbyReads(t *testing.T) {
	r := newStandbyRig(t)
	r.reads()
	group := sm.Fact{Kind: sm.FactSAGroup, Name: "g", Body: "{}"}
	r.save(group) // what a host registers is no reason to read again
	if n := len(r.fab.Sets()[standbyNode].ByAttr); n > 0 {
		t.Errorf("it has written %v", r.fab.Sets()[standbyNode])
	}
	read, facts := r.term(r.core())
	if read == nil {
		t.Fatal("what was read is not used")
	}
	if !facts.known || !slices.Contains(facts.facts, group) {
		t.Errorf("facts known: %v, with what a host registered: %v", facts.known, slices.Contains(facts.facts, group))
	}
	must(t, runDriver(t.Context(), driver.Options{Store: facts, Until: driver.UntilSettled}, read, nothing()))
	for attr, n := range r.fab.Sets()[standbyNode].ByAttr {
		if attr != mad.AttrPortInfo {
			t.Errorf("%d times Set %v", n, attr)
		}
	}
	if lid := r.fab.PortInfo("h2", 1).MasterSMLID; lid != r.fab.PortInfo(standbyNode, 1).LID {
		t.Errorf("h2 has the Subnet Manager at LID %d", lid)
	}
}

// TestStandbyDrops: a reading is dropped as soon as a fact of the core changes, the own cable is out, or the adapter is
// gone.
func TestStandbyDrops(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *standbyRig)
		want   error // nil: the facts changed
	}{
		"the leader writes":   {func(r *standbyRig) { r.save(sm.Fact{Kind: sm.FactWork, Mark: "writes 2"}) }, nil},
		"another key":         {func(r *standbyRig) { r.save(sm.Fact{Kind: sm.KeyFact(0), GUID: 0x200000, Sealed: "x"}) }, nil},
		"a LID is taken back": {func(r *standbyRig) { r.save(sm.Fact{Kind: sm.FactLID, GUID: r.anyLID()}) }, nil},
		"the cable is out":    {func(r *standbyRig) { must(r.t, r.fab.Unlink(standbyNode, 1)) }, driver.ErrUnlinked},
		"the adapter is gone": {func(r *standbyRig) { r.cut() }, errors.New("any")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStandbyRig(t)
			r.reads()
			tt.change(r)
			err := r.end()
			if (err == nil) != (tt.want == nil) || errors.Is(tt.want, driver.ErrUnlinked) && !errors.Is(err, driver.ErrUnlinked) {
				t.Errorf("reading ended with %v, want %v", err, tt.want)
			}
			if r.standby.complete() {
				t.Error("it says that it has read the fabric")
			}
			if read, _ := r.term(r.core()); read != nil {
				t.Error("a term begins with what was read")
			}
		})
	}
}

// anyLID returns an end port that has a LID.
func (r *standbyRig) anyLID() ib.GUID {
	r.t.Helper()
	recs, _, err := fabric.Facts().List(r.t.Context(), r.service.store, "")
	must(r.t, err)
	for _, rec := range recs {
		if rec.Value.Kind == sm.FactLID {
			return rec.Value.GUID
		}
	}
	r.t.Fatal("no end port has a LID")
	return 0
}

// TestStandbyOfOtherTerm: a term does not begin with what was read if its configuration is
// another one, or facts changed although reading had no time to end.
func TestStandbyOfOtherTerm(t *testing.T) {
	for name, change := range map[string]func(r *standbyRig, core *sm.Config){
		"configuration": func(_ *standbyRig, core *sm.Config) { core.Priority++ },
		"siblings":      func(_ *standbyRig, core *sm.Config) { core.Siblings = append(core.Siblings, sm.Sibling{GUID: 1}) },
		"facts":         func(r *standbyRig, _ *sm.Config) { r.save(sm.Fact{Kind: sm.FactWork, Mark: "settled 2"}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newStandbyRig(t)
			r.reads()
			r.standby.hold()
			core := r.core()
			change(r, &core)
			if read, _ := r.term(core); read != nil {
				t.Error("a term begins with what was read")
			}
			r.standby.release()
		})
	}
}

// TestStandbyAwaitsLeader: nothing is read while the leader writes, and the leader's own
// instance does not read.
func TestStandbyAwaitsLeader(t *testing.T) {
	r := newStandbyRig(t)
	r.save(sm.Fact{Kind: sm.FactWork, Mark: "writes 2"})
	ctx, cancel := context.WithTimeout(t.Context(), 3*quietFacts)
	defer cancel()
	if recs, _, err := r.standby.quiet(ctx); recs != nil || err != nil {
		t.Errorf("%d facts to begin with, %v", len(recs), err)
	}
	r.save(sm.Fact{Kind: sm.FactWork, Mark: "settled 2"})
	r.standby.hold()
	if took, err := r.standby.read(t.Context()); took != 0 || err != nil {
		t.Errorf("it reads for %v while it leads: %v", took, err)
	}
	r.standby.release()
	r.reads()
}

// TestStandbyRest: readings take a fifth of the time at most, and begin ten seconds after one another at least. A fabric
// that cannot be reached is tried again after half a minute.
func TestStandbyRest(t *testing.T) {
	for _, tt := range []struct {
		since, took time.Duration
		err         error
		want        time.Duration
	}{
		{time.Second, 500 * time.Millisecond, nil, 9 * time.Second},
		{20 * time.Second, 20 * time.Second, nil, 80 * time.Second},
		{time.Hour, 20 * time.Second, nil, 100*time.Second - time.Hour},
		{time.Second, time.Second, driver.ErrDiverged, 9 * time.Second},
		{time.Hour, time.Second, driver.ErrUnlinked, standbyRest},
		{time.Second, 0, errors.New("no such adapter"), standbyRest},
	} {
		if got := restAfter(tt.since, tt.took, tt.err); got != tt.want {
			t.Errorf("after %v, of which it read for %v, with %v: %v, want %v", tt.since, tt.took, tt.err, got, tt.want)
		}
	}
}
