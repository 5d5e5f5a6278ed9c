package smtrust_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/topo"
)

var (
	key   = ib.NewSMKey(7)
	other = ib.NewSMKey(8)
)

// fabric is three hosts at the first ports of a switch. The first is ours.
type fabric struct {
	topo   topo.Builder
	root   topo.NodeID
	hosts  [3]topo.PortID
	byGUID map[ib.GUID]topo.PortID
	blind  bool // no port leads on
}

func newFabric() *fabric {
	f := &fabric{byGUID: make(map[ib.GUID]topo.PortID)}
	sw := f.topo.AddNode(topo.Node{GUID: 0x10, Type: ib.NodeSwitch, NumPorts: 4})
	f.name(f.topo.Node(sw).FirstPort, 0x11)
	for i := range f.hosts {
		id := f.topo.AddNode(topo.Node{GUID: ib.GUID(0x20 + 0x10*i), Type: ib.NodeCA, NumPorts: 1})
		f.hosts[i] = f.topo.PortOf(id, 1)
		f.topo.Connect(f.topo.PortOf(sw, ib.PortNum(i+1)), f.hosts[i])
		f.name(f.hosts[i], ib.GUID(0x21+0x10*i))
	}
	f.root = f.topo.Port(f.hosts[0]).Node
	return f
}

func (f *fabric) name(p topo.PortID, guid ib.GUID) {
	port := f.topo.Port(p)
	port.GUID = guid
	f.topo.SetPort(p, port)
	f.byGUID[guid] = p
}

func (f *fabric) Root() topo.NodeID { return f.root }
func (f *fabric) Own() topo.PortID  { return f.hosts[0] }

func (f *fabric) PortByGUID(guid ib.GUID) (topo.PortID, bool) {
	p, ok := f.byGUID[guid]
	return p, ok
}

func (f *fabric) LeadsOn(p topo.PortID) bool {
	return !f.blind && (f.topo.IsExternal(p) || p == f.hosts[0])
}

func (f *fabric) trust(key ib.SMKey, allowed ...smtrust.Allowed) smtrust.Trust {
	return smtrust.New(f, &f.topo, smtrust.Options{Key: key, Allowed: allowed, Controls: controls.Strict{}})
}

// TestTrusts checks which ports are trusted, and which are shown the key.
func TestTrusts(t *testing.T) {
	f := newFabric()
	here, there := ib.Place{Switch: 0x10, Port: 2}, ib.Place{Switch: 0x10, Port: 3}
	for _, tt := range []struct {
		name                  string
		key                   ib.SMKey
		allowed               []smtrust.Allowed
		listed, may, is, show bool
	}{
		{"no list", key, nil, false, true, true, false},
		{"no key", ib.SMKey{}, []smtrust.Allowed{{GUID: 0x31}}, true, false, false, false},
		{"anywhere", key, []smtrust.Allowed{{GUID: 0x41}, {GUID: 0x31}}, true, true, true, true},
		{"at its place", key, []smtrust.Allowed{{GUID: 0x31, Place: here}}, true, true, true, true},
		{"elsewhere", key, []smtrust.Allowed{{GUID: 0x31, Place: there}}, false, false, false, false},
		{"another", key, []smtrust.Allowed{{GUID: 0x41}}, false, false, false, false},
		{"none", key, []smtrust.Allowed{{}}, false, false, false, false},
	} {
		r := f.trust(tt.key, tt.allowed...)
		p := f.hosts[1]
		if r.IsListed(p) != tt.listed || r.MayTrust(p) != tt.may || r.Trusts(p, tt.key) != tt.is || r.ShowsKey(p) != tt.show {
			t.Errorf("%s: listed %t, may be trusted %t, is trusted %t, is shown the key %t", tt.name, r.IsListed(p), r.MayTrust(p), r.Trusts(p, tt.key), r.ShowsKey(p))
		}
		if r.Trusts(p, other) || r.ShowsKey(topo.None) {
			t.Errorf("%s: another key is accepted, or ours is shown to an unknown port", tt.name)
		}
	}
	r := f.trust(key, smtrust.Allowed{GUID: 0x41})
	if r.SetAllowed([]smtrust.Allowed{{GUID: 0x31}}); !r.IsListed(f.hosts[1]) || len(r.Allowed()) != 1 {
		t.Error("the list is not replaced")
	}
}

// TestJudge checks every reason not to obey a command.
func TestJudge(t *testing.T) {
	f := newFabric()
	open, closed, keyless := f.trust(key, smtrust.Allowed{GUID: 0x31}), f.trust(key), f.trust(ib.SMKey{}, smtrust.Allowed{GUID: 0x31})
	for _, tt := range []struct {
		trust smtrust.Trust
		from  topo.PortID
		says  ib.GUID
		shown ib.SMKey
		want  smtrust.Objection
	}{
		{open, f.hosts[1], 0x31, key, smtrust.NoObjection},
		{keyless, f.hosts[1], 0x31, ib.SMKey{}, smtrust.NoKey},
		{open, f.hosts[1], 0x31, other, smtrust.WrongKey},
		{open, topo.None, 0x31, key, smtrust.NoSender},
		{open, f.hosts[1], 0x41, key, smtrust.WrongGUID},
		{open, f.hosts[2], 0x41, key, smtrust.NotAllowed},
		{closed, f.hosts[1], 0x31, key, smtrust.NotAllowed},
	} {
		if got := tt.trust.Judge(tt.from, tt.says, tt.shown); got != tt.want {
			t.Errorf("port %d, %v: objection %d, want %d", tt.from, tt.says, got, tt.want)
		}
	}
}

// TestSibling checks that a sibling is one only at its place.
func TestSibling(t *testing.T) {
	f := newFabric()
	r := smtrust.New(f, &f.topo, smtrust.Options{Controls: controls.Strict{}, Siblings: []smtrust.Sibling{
		{GUID: 0x31, Place: ib.Place{Switch: 0x10, Port: 2}}, {GUID: 0x41, Place: ib.Place{Switch: 0x10, Port: 2}},
	}})
	if !r.IsManager(f.hosts[0]) || !r.IsManager(f.hosts[1]) || r.IsManager(f.hosts[2]) {
		t.Error("want our own port and the sibling at its place")
	}
	if !r.IsSibling(0x41) || r.IsSibling(0x51) || r.IsSibling(0) || len(r.Siblings()) != 2 {
		t.Error("want the port GUIDs of siblings wherever they are")
	}
	alone := f.trust(key)
	if !alone.IsManager(f.hosts[0]) || alone.IsManager(f.hosts[1]) {
		t.Error("without siblings, want our own port alone")
	}
}

// TestSender checks that the sender of a request is found on the way back of its answer, or not at all.
func TestSender(t *testing.T) {
	f := newFabric()
	r := f.trust(key)
	request := func(back ...ib.PortNum) *mad.MAD {
		var m mad.MAD
		out := mad.MakeRoute(back...)
		mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo}, &out, ib.MKey{})
		for i, n := range back {
			m.ReturnPath()[i+1] = byte(n)
		}
		return &m
	}
	for _, tt := range []struct {
		name string
		m    *mad.MAD
		lid  ib.LID
		want topo.PortID
	}{
		{"a host", request(2, 1), ib.PermissiveLID, f.hosts[1]},
		{"another", request(3, 1), ib.PermissiveLID, f.hosts[2]},
		{"the switch", request(1), ib.PermissiveLID, f.byGUID[0x11]},
		{"by a LID", request(2, 1), 5, topo.None},
		{"ourselves", request(1, 1), ib.PermissiveLID, topo.None},
		{"no way", request(), ib.PermissiveLID, topo.None},
		{"no cable", request(4, 1), ib.PermissiveLID, topo.None},
		{"no such port", request(9, 1), ib.PermissiveLID, topo.None},
		{"through a host", request(1, 2, 1), ib.PermissiveLID, topo.None},
	} {
		if got := r.Sender(tt.m, tt.lid); got != tt.want {
			t.Errorf("%s: port %d, want %d", tt.name, got, tt.want)
		}
	}
	m := request(2, 1)
	m.SetHeader(mad.Header{Class: mad.ClassSubn, Method: mad.MethodGet})
	if got := r.Sender(m, ib.PermissiveLID); got != topo.None {
		t.Errorf("a request that is routed by LID: port %d", got)
	}
	delete(f.byGUID, 0x31)
	if got := r.Sender(request(2, 1), ib.PermissiveLID); got != topo.None {
		t.Errorf("a GUID that belongs elsewhere: port %d", got)
	}
	f.blind = true
	if got := r.Sender(request(3, 1), ib.PermissiveLID); got != topo.None {
		t.Errorf("a port that does not lead on: port %d", got)
	}
	f.blind, f.root = false, topo.None
	if got := r.Sender(request(3, 1), ib.PermissiveLID); got != topo.None {
		t.Errorf("before a node is known: port %d", got)
	}
}

// TestAllowedText checks the text of an allowed Subnet Manager.
func TestAllowedText(t *testing.T) {
	for _, s := range []string{"0x0020000000000101", "0x0020000000000101@0x0010000100000001/7", "none"} {
		a, err := smtrust.Parse(s)
		if err != nil || a.String() != s {
			t.Errorf("%s: %v, %v", s, a, err)
		}
	}
	for _, s := range []string{"", "0", "x", "0x20@", "0x20@0x10", "0x20@0x10/x", "@0x10/1", "none@0x10/1", "None"} {
		if a, err := smtrust.Parse(s); err == nil {
			t.Errorf("%q is taken for %v", s, a)
		}
	}
}

// FuzzParse checks that what is read is written as it is read.
func FuzzParse(f *testing.F) {
	f.Add("0x0020000000000101")
	f.Add("0x0020000000000101@0x0010000100000001/7")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := smtrust.Parse(s)
		if err != nil {
			return
		}
		if b, err := smtrust.Parse(a.String()); err != nil || a != b {
			t.Errorf("%q: %v is read as %v, %v", s, a, b, err)
		}
	})
}
