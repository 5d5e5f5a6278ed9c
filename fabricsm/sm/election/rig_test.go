package election_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/election"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/smrank"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

var (
	ourKey   = ib.NewSMKey(7)
	otherKey = ib.NewSMKey(8)
)

// rig is three hosts at the first ports of a switch. On the first is the Subnet Manager under test, with priority 5. The
// port GUIDs are 0x21, 0x31 and 0x41.
type rig struct {
	t      *testing.T
	topo   topo.Builder
	queue  work.Queue
	wire   work.Window
	timers work.Timers
	trust  smtrust.Trust
	now    time.Time
	hosts  [3]topo.PortID
	byGUID map[ib.GUID]topo.PortID
	info   map[topo.PortID]*mad.PortInfo
	gone   map[topo.PortID]bool
	cut    bool
	log    []string      // what was asked of the core since it was last compared
	sent   []mad.SMInfo  // commands
	answer mad.SMInfo    // the last
	traps  []mad.Trap144 // sent
	id     uint32        // of the last command
	read   []topo.PortID // in the background

	*election.Election
}

func newRig(t *testing.T, key ib.SMKey) *rig {
	r := &rig{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), wire: work.NewWindow(64), byGUID: make(map[ib.GUID]topo.PortID),
		info: make(map[topo.PortID]*mad.PortInfo), gone: make(map[topo.PortID]bool),
	}
	sw := r.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 4})
	for i := range r.hosts {
		id := r.topo.AddNode(topo.Node{GUID: ib.GUID(0x20 + 0x10*i), Type: ib.NodeCA, NumPorts: 1})
		p := r.topo.PortOf(id, 1)
		r.topo.Connect(r.topo.PortOf(sw, ib.PortNum(i+1)), p)
		port := r.topo.Port(p)
		port.GUID = ib.GUID(0x21 + 0x10*i)
		r.topo.SetPort(p, port)
		r.hosts[i], r.byGUID[port.GUID] = p, p
		r.info[p] = &mad.PortInfo{LID: ib.LID(i + 1)}
	}
	r.queue.Extend(r.topo.NumNodes(), r.topo.NumPorts())
	r.trust = smtrust.New(r, &r.topo, smtrust.Options{
		Key: key, Allowed: []smtrust.Allowed{{GUID: 0x31}, {GUID: 0x41}}, Controls: controls.Strict{},
	})
	o := election.Options{GUID: 0x21, Priority: 5, Key: key, RetryMin: time.Second, RetryMax: time.Minute}
	o.SetDefaults(o.Priority)
	e := election.New(r, r, r, election.Parts{Topo: &r.topo, Queue: &r.queue, Wire: &r.wire, Timers: &r.timers, Trust: &r.trust}, o)
	r.Election = &e
	return r
}

func (r *rig) note(format string, args ...any) { r.log = append(r.log, fmt.Sprintf(format, args...)) }

// expect compares what was asked of the core since the last time.
func (r *rig) expect(want ...string) {
	r.t.Helper()
	if !slices.Equal(r.log, want) {
		r.t.Errorf("asked of the core:\n\t%s\nwant:\n\t%s", strings.Join(r.log, "\n\t"), strings.Join(want, "\n\t"))
	}
	r.log = nil
}

// is compares the state.
func (r *rig) is(want ib.SMState) {
	r.t.Helper()
	if got := r.State(); got != want {
		r.t.Errorf("the state is %v, want %v", got, want)
	}
}

// asks sends the work that is marked, and returns the ports.
func (r *rig) asks() (ports []topo.PortID) {
	for {
		x, ok := r.queue.Pop()
		if !ok {
			return ports
		}
		r.queue.Unmark(x)
		r.Work(x.Port())
		ports = append(ports, x.Port())
	}
}

// says has the Subnet Manager at a port describe itself.
func (r *rig) says(p topo.PortID, state ib.SMState, priority uint8, key ib.SMKey) {
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGetResp, Attr: mad.AttrSMInfo}, nil, ib.MKey{})
	if err := mad.Encode(m.Data(), &mad.SMInfo{GUID: r.topo.GUIDOf(p), SMKey: key, Priority: priority, SMState: state}); err != nil {
		r.t.Fatal(err)
	}
	r.Answered(&work.Request{Ref: work.OnPort(work.SMInfo, p), Method: mad.MethodGet}, &m)
}

// obeys answers a command.
func (r *rig) obeys(p topo.PortID, control mad.SMInfoControl, status mad.Status) {
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGetResp, Attr: mad.AttrSMInfo, Mod: uint32(control)}, nil, ib.MKey{})
	m.SetStatus(status)
	r.wire.End(r.id)
	r.Answered(&work.Request{Ref: work.OnPort(work.SMInfo, p), Method: mad.MethodSet, Mod: uint32(control)}, &m)
}

// command has the Subnet Manager at a port command ours, and reports whether it is answered.
func (r *rig) command(i int, control mad.SMInfoControl, state ib.SMState, key ib.SMKey) bool {
	var m mad.MAD
	out := mad.MakeRoute(1, 1)
	mad.NewSMP(&m, mad.Header{Method: mad.MethodSet, Attr: mad.AttrSMInfo, Mod: uint32(control)}, &out, ib.MKey{})
	copy(m.ReturnPath()[1:], []byte{byte(i + 1), 1})
	if err := mad.Encode(m.Data(), &mad.SMInfo{GUID: r.topo.GUIDOf(r.hosts[i]), SMKey: key, SMState: state}); err != nil {
		r.t.Fatal(err)
	}
	return r.Receive(election.Asked{MAD: &m, LID: ib.PermissiveLID})
}

// settles runs the election until it decides.
func (r *rig) settles() {
	r.t.Helper()
	for range 3 {
		if r.Elect() && len(r.asks()) == 0 {
			return
		}
	}
	r.t.Error("the election does not end")
}

// rules makes ours the master.
func (r *rig) rules() {
	r.t.Helper()
	r.settles()
	r.is(ib.SMMaster)
	r.log = nil
}

func (r *rig) Now() time.Time                      { return r.now }
func (r *rig) Own() topo.PortID                    { return r.hosts[0] }
func (r *rig) Root() topo.NodeID                   { return r.topo.Port(r.hosts[0]).Node }
func (r *rig) LeadsOn(topo.PortID) bool            { return true }
func (r *rig) IsCut() bool                         { return r.cut }
func (r *rig) IsGone(p topo.PortID) bool           { return r.gone[p] }
func (r *rig) Info(p topo.PortID) *mad.PortInfo    { return r.info[p] }
func (r *rig) ReadLater(p topo.PortID)             { r.read = append(r.read, p) }
func (r *rig) ReadOwn()                            { r.note("read our own port") }
func (r *rig) Changed(s ib.SMState, reason string) { r.note("%v: %s", s, reason) }
func (r *rig) Solved(fault.Key)                    {}
func (r *rig) Rule(foreign bool)                   { r.note("rule, foreign %t", foreign) }
func (r *rig) Unprove()                            { r.note("unprove") }
func (r *rig) Renew()                              { r.note("renew") }
func (r *rig) Doubt()                              { r.note("doubt") }
func (r *rig) Disturb()                            { r.note("disturb") }

func (r *rig) Problem(k fault.Key, s ib.SMState, reason string) {
	r.note("%v: %v: %s", k.Kind, s, reason)
}
func (r *rig) After(d time.Duration, a work.Alarm, _ work.Ref) { r.note("alarm %d in %v", a, d) }

func (r *rig) Get(p topo.PortID, quiet bool) { r.note("get %v, quiet %t", r.topo.GUIDOf(p), quiet) }

func (r *rig) Set(p topo.PortID, control mad.SMInfoControl, si mad.SMInfo) uint32 {
	r.note("%v to %v as %v", control, r.topo.GUIDOf(p), si.SMState)
	r.sent = append(r.sent, si)
	r.id = r.wire.Add(&work.Request{Ref: work.OnPort(work.SMInfo, p), Method: mad.MethodSet}, false)
	return r.id
}

func (r *rig) Answer(_ election.Asked, status mad.Status, si mad.SMInfo, manager bool) {
	r.note("answer %v with %v, manager %t", status, si.SMState, manager)
	r.answer = si
}

func (r *rig) Trap(to ib.LID, _ ib.TID, t mad.Trap144) {
	r.note("trap to LID %v", to)
	r.traps = append(r.traps, t)
}

func (r *rig) PortByGUID(guid ib.GUID) (topo.PortID, bool) {
	p, ok := r.byGUID[guid]
	return p, ok
}

func (r *rig) PortByLID(l ib.LID) topo.PortID {
	for p, pi := range r.info {
		if pi.LID == l {
			return p
		}
	}
	return topo.None
}

func (r *rig) Described(d election.Description) {
	r.note("%v is %v, rank %v, trusted %t, report %d %t", d.GUID, d.State, d.Rank == smrank.Rank{Priority: d.Priority, GUID: r.topo.GUIDOf(d.Port)}, d.Trusted, d.Count, d.Reported)
}

func (r *rig) Refused(f election.Refusal) {
	r.note("refused %v of %v: objection %d, ours %v, report %d %t", f.Control(), f.Sender.GUID, f.Why, f.State, f.Count, f.Reported)
}

// standsBy has the election settle behind a Subnet Manager of higher rank in a state, and forgets what was done until then.
func (r *rig) standsBy(p topo.PortID, state ib.SMState) {
	r.t.Helper()
	r.says(p, state, 9, ourKey)
	r.settlesFor(p, state, 9)
	r.is(ib.SMStandby)
	r.log = nil
}
