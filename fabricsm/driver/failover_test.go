package driver_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// pair is two subnet managers on one fabric, of which the first is master.
type pair struct {
	t    *testing.T
	list *netlist.Netlist
	sock string // of the simulator

	change func(*driver.Options) // nil: none
}

var pairKey = ib.NewSAKey(0x8f3ac91d27b6e504)

func pairFabric(t *testing.T) *netlist.Netlist {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// contender is one of them.
type contender struct {
	*manager
	port *renewals
}

// renewals is a port that counts the requests of the Subnet Manager to register again, by LID.
type renewals struct {
	*ibsim.Port

	mu   sync.Mutex
	lids map[ib.LID]int
}

// TrySend implements transport.Lane.
func (r *renewals) TrySend(packets []transport.Packet) (int, error) {
	n, err := r.Port.TrySend(packets)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range packets[:n] {
		m := &packets[i].MAD
		var info mad.PortInfo
		if m.Method() == mad.MethodSet && m.Attr() == mad.AttrPortInfo && mad.Decode(m.Data(), &info) == nil && info.ClientReregister {
			r.lids[info.LID]++
		}
	}
	return n, err
}

func (r *renewals) told() map[ib.LID]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.lids)
}

// run starts one at a host, with a store.
func (p *pair) run(node string, priority uint8, peer string, store driver.Store) *contender {
	p.t.Helper()
	wire, err := ibsim.Dial(p.t.Context(), ibsim.Options{Socket: p.sock, Node: node, AsSM: true})
	if err != nil {
		p.t.Fatal(err)
	}
	port := &renewals{Port: wire, lids: make(map[ib.LID]int)}
	answers := sa.DefaultConfig()
	answers.Key = pairKey
	agent, err := sa.New(answers)
	if err != nil {
		p.t.Fatal(err)
	}
	cfg := sm.Config{Enforcement: sm.Accepted, Priority: priority, SMKey: ib.NewSMKey(0x5ec4e7ed5ec4e7ed)}
	cfg.Election.MasterPriority = priority
	cfg.Election.Allowed = []sm.AllowedSM{{GUID: p.list.Find(peer).PortGUID(1)}}
	ctx, cancel := context.WithCancel(context.Background())
	m := &manager{
		t: p.t, views: make(chan *sm.View, 1), events: make(chan sm.Event, 1<<16),
		intents: make(chan sm.Intent, 1), inputs: make(chan sm.Input, 1), ended: make(chan error, 1), cancel: cancel,
	}
	in := sm.Intent{Revision: 1}
	for _, h := range []string{"h1", "h3"} {
		n := p.list.Find(h)
		in.Grants = append(in.Grants, sm.Grant{GUID: n.PortGUID(1), PKey: 0x8001, Place: ib.Place{Switch: p.list.Find(n.Ports[1].Peer).GUID, Port: n.Ports[1].PeerPort}})
	}
	m.intents <- in
	o := driver.Options{
		Port: port, Core: cfg, Store: store, SA: agent, OnView: m.show,
		OnEvent: func(e sm.Event) {
			select {
			case m.events <- e:
			default:
			}
		},
	}
	if p.change != nil {
		p.change(&o)
	}
	go func() { m.ended <- driver.Run(ctx, o, m.intents) }()
	p.t.Cleanup(m.stop)
	return &contender{m, port}
}

// client is a host that sends its requests to the Subnet Manager that its port names.
type client struct {
	*satest.Client
	t    *testing.T
	node string
}

func (p *pair) client(node string) *client {
	p.t.Helper()
	port, err := ibsim.Dial(p.t.Context(), ibsim.Options{Socket: p.sock, Node: node, AsSM: true}) // to be sent reports
	if err != nil {
		p.t.Fatal(err)
	}
	c := &satest.Client{Port: port}
	p.t.Cleanup(func() { _ = c.Close() })
	return &client{c, p.t, node}
}

// ask sends a trusted request, and repeats it until there is an answer.
func (c *client) ask(method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte) error) satest.Answer {
	c.t.Helper()
	q := satest.Question{Method: method, Attr: attr, Mask: mask, Record: make([]byte, mad.SADataSize), Key: pairKey}
	if err := fill(q.Record); err != nil {
		c.t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; {
		if err := c.Learn(); err != nil {
			c.t.Fatal(err)
		}
		a, err := c.Ask(q)
		if err != nil {
			c.t.Fatal(err)
		}
		if !a.Silent() {
			return a
		}
		if time.Now().After(until) {
			c.t.Fatalf("%v of %v from %s: nobody answers", method, attr, c.node)
		}
	}
}

func (c *client) set(attr mad.AttrID, mask mad.ComponentMask, fill func([]byte) error) {
	c.t.Helper()
	if a := c.ask(mad.MethodSet, attr, mask, fill); a.Status != mad.StatusOK {
		c.t.Fatalf("%s sets %v: %v", c.node, attr, a.Status)
	}
}

func (c *client) table(attr mad.AttrID) (records []string) {
	c.t.Helper()
	a := c.ask(mad.MethodGetTable, attr, 0, func([]byte) error { return nil })
	for _, r := range a.Records() {
		records = append(records, fmt.Sprintf("%x", r))
	}
	return records
}

func of[T any](rec T) func([]byte) error {
	return func(b []byte) error { return mad.Encode(b, &rec) }
}

var pairTables = []mad.AttrID{mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfoRecord}

func (c *client) tables() map[string][]string {
	all := make(map[string][]string)
	for _, attr := range pairTables {
		all[attr.String()] = c.table(attr)
	}
	return all
}

// register has a host join a group, offer a service and subscribe.
func (c *client) register(guid ib.GUID) {
	c.t.Helper()
	gid := ib.MakeGID(ib.DefaultPrefix, guid)
	c.set(mad.AttrMCMemberRecord, mad.MCMemberCreate, of(mad.MCMemberRecord{MGID: pairGroup, PortGID: gid, JoinState: ib.FullMember, PKey: 0x8001, QKey: 7}))
	c.set(mad.AttrServiceRecord, 0x17, of(mad.ServiceRecord{ServiceID: 0x1234, ServiceGID: gid, ServicePKey: 0x8001, ServiceLease: 0xFFFFFFFF}))
	c.set(mad.AttrInformInfo, 0, of(mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: 66, ProducerType: mad.AllProducers}))
}

var pairGroup = ib.GID{0xFF, 0x12, 0xA0, 0x1C, 15: 1}

// report waits until a report about a group comes from the Subnet Manager that the port names.
func (c *client) report(group ib.GID) {
	c.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		p, err := c.Next(time.Until(until))
		if err != nil {
			c.t.Fatalf("%s waits for a report: %v", c.node, err)
		}
		if p.MAD.Method() != mad.MethodReport || p.LID != c.SM {
			continue
		}
		var n mad.Notice
		if err := mad.Decode(p.MAD.SAData(), &n); err != nil {
			c.t.Fatal(err)
		}
		if slices.Equal(n.DataDetails[6:22], group[:]) {
			return
		}
	}
}

// TestFailoverKeepsWhatIsRegistered: two Subnet Managers share one store. The second was standby all the time, and knows
// the registrations of hosts with the first. No host registers again: groups have their members and trees, services are
// found, and subscribers get their reports.
func TestFailoverKeepsWhatIsRegistered(t *testing.T) {
	l, store := pairFabric(t), &driver.Memory{}
	p := &pair{t: t, list: l, sock: ibsimtest.Start(t, text(t, l, nil)).Socket()}
	first := p.run("sm", 9, "h2", store)
	first.until("a settled fabric", rested)
	second := p.run("h2", 5, "sm", store)
	second.until("a standby", func(v *sm.View) bool { return v.State == ib.SMStandby })
	h1, h3 := p.client("h1"), p.client("h3")
	h1.register(p.list.Find("h1").PortGUID(1))
	was, before := h1.SM, h1.tables()
	for attr, records := range before {
		if len(records) == 0 {
			t.Fatalf("there is no %s", attr)
		}
	}
	first.stop()
	v := second.until("the second as master, and the tree", func(v *sm.View) bool {
		return v.State == ib.SMMaster && v.Settled && v.Multicast != nil && len(v.Multicast.Trees) == 1
	})
	if after := h1.tables(); !cmp.Equal(before, after) {
		t.Errorf("what is registered (-before +after):\n%s", cmp.Diff(before, after))
	}
	if h1.SM == was || h1.SM != v.LID {
		t.Errorf("the Subnet Manager had LID %v, has %v, and h1 is told %v", was, v.LID, h1.SM)
	}
	other := pairGroup
	other[15]++
	h3.set(mad.AttrMCMemberRecord, mad.MCMemberCreate,
		of(mad.MCMemberRecord{MGID: other, PortGID: ib.MakeGID(ib.DefaultPrefix, p.list.Find("h3").PortGUID(1)), JoinState: ib.FullMember, PKey: 0x8001, QKey: 7}))
	h1.report(other)
}

// TestFailoverAsksToRegisterAgain: a manager without the registrations asks all clients to register again, once. Ports of
// ibsim cannot be asked.
func TestFailoverAsksToRegisterAgain(t *testing.T) {
	l := pairFabric(t)
	p := &pair{t: t, list: l, sock: simtest.Serve(t, sim.New(l)).Socket}
	first := p.run("sm", 9, "h2", &driver.Memory{})
	first.until("a settled fabric", rested)
	second := p.run("h2", 5, "sm", &driver.Memory{})
	second.until("a standby", func(v *sm.View) bool { return v.State == ib.SMStandby })
	h1 := p.client("h1")
	guid := p.list.Find("h1").PortGUID(1)
	h1.register(guid)
	before := h1.tables()
	first.stop()
	v := second.until("the second as master", func(v *sm.View) bool { return v.State == ib.SMMaster && v.Settled })
	if after := h1.table(mad.AttrServiceRecord); len(after) != 0 {
		t.Errorf("it knows what it cannot know: %q", after)
	}
	told := second.port.told()
	for i := range v.Fabric.Ports() {
		if port, node := v.Fabric.Port(i), v.Fabric.NodeOf(i); node.Type == ib.NodeCA && port.LID != 0 && told[port.LID] != 1 {
			t.Errorf("%s is told to register again %d times, want once", node.Description, told[port.LID])
		}
	}
	h1.register(guid)
	if after := h1.tables(); !cmp.Equal(before, after) {
		t.Errorf("what is registered (-before +after):\n%s", cmp.Diff(before, after))
	}
}
