package sm_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// duel runs several cores on one simulated fabric, in slices of virtual time.
type duel struct {
	t    *testing.T
	list *netlist.Netlist
	fab  *sim.Fabric
	now  time.Time
	envs map[string]*env // by node, those that live
	told map[string][]ib.SMState

	audit time.Duration // Config.AuditPeriod of cores that are started
}

// slice is how long one core runs before the next.
const slice = time.Millisecond

func newDuel(t *testing.T, l *netlist.Netlist) *duel {
	return &duel{t: t, list: l, fab: sim.NewWith(l, sim.Options{LoseSilently: true}), now: epoch, envs: make(map[string]*env), told: make(map[string][]ib.SMState), audit: -1}
}

// start starts a core at a node. All nodes of the duel are allowed.
func (d *duel) start(node string, priority, master uint8, others ...string) *env {
	d.t.Helper()
	e := &env{
		t: d.t, list: d.list, fab: d.fab, now: d.now, rng: rand.New(rand.NewPCG(1, uint64(len(node)))),
		smps: make(map[string]int), asked: make(map[ib.TID]bool),
		cfg: sm.Config{Priority: priority, SMKey: rightKey, AuditPeriod: d.audit, Election: sm.ElectionConfig{MasterPriority: master}},
	}
	for _, o := range others {
		e.cfg.Election.Allowed = append(e.cfg.Election.Allowed, sm.AllowedSM{GUID: d.list.Find(o).PortGUID(1), Place: placeOf(d.list, o)})
	}
	var err error
	if e.st, err = d.fab.Station(node, true); err != nil {
		d.t.Fatal(err)
	}
	e.cfg.PortGUID = e.st.GUID()
	d.envs[node] = e
	e.start()
	return e
}

// kill takes a core away without a word.
func (d *duel) kill(node string) {
	d.envs[node].st.Close()
	delete(d.envs, node)
}

func (d *duel) run(dt time.Duration) {
	for until := d.now.Add(dt); d.now.Before(until); d.now = d.now.Add(slice) {
		for _, node := range []string{"sm", "h1", "h2", "h3"} {
			if e := d.envs[node]; e != nil {
				e.run(d.now.Add(slice).Sub(e.now))
				for _, ev := range e.takeEvents() {
					if c, ok := ev.(*sm.StateChanged); ok {
						d.told[node] = append(d.told[node], c.State)
					}
				}
			}
		}
	}
}

// rules runs until one core alone is master, settled, and the others stand by.
func (d *duel) rules(master string, within time.Duration) time.Duration {
	d.t.Helper()
	began := d.now
	for d.now.Sub(began) < within {
		d.run(10 * time.Millisecond)
		right := 0
		for node, e := range d.envs {
			if e.view == nil {
				continue
			}
			switch {
			case node == master && e.view.State == ib.SMMaster && e.view.Settled:
				right++
			case node != master && e.view.State == ib.SMStandby:
				right++
			}
		}
		if right == len(d.envs) {
			return d.now.Sub(began)
		}
	}
	for node, e := range d.envs {
		d.t.Logf("%s: %v after %v, settled %v, others %+v, problems %q", node, e.view.State, d.told[node], e.view.Settled, e.view.Others, e.view.Problems)
	}
	d.t.Fatalf("%s alone does not rule within %v", master, within)
	return 0
}

// lids returns the LIDs of all end ports as the fabric has them. It fails if a cabled port is not Active or does not know
// the master.
func (d *duel) lids(master string) map[string]ib.LID {
	d.t.Helper()
	lids := make(map[string]ib.LID)
	smLID := d.fab.PortInfo(master, 1).LID
	for i := range d.list.Nodes {
		n := &d.list.Nodes[i]
		for num := range n.Ports {
			if num > 0 && n.Ports[num].Peer == "" || num == 0 && n.Type != ib.NodeSwitch {
				continue
			}
			pi := d.fab.PortInfo(n.Name, ib.PortNum(num))
			if pi.PortState != ib.PortActive {
				d.t.Errorf("%s/%d is %v", n.Name, num, pi.PortState)
			}
			if (num == 0) == (n.Type == ib.NodeSwitch) {
				lids[n.Name] = pi.LID
				if pi.MasterSMLID != smLID {
					d.t.Errorf("%s has SM LID %v, want %v", n.Name, pi.MasterSMLID, smLID)
				}
			}
		}
	}
	return lids
}

func (d *duel) masters(node string) (n int) {
	for _, s := range d.told[node] {
		if s == ib.SMMaster {
			n++
		}
	}
	return n
}

func same(t *testing.T, before, now map[string]ib.LID) {
	t.Helper()
	for node, l := range before {
		if now[node] != l {
			t.Errorf("%s had LID %v and has %v", node, l, now[node])
		}
	}
}
