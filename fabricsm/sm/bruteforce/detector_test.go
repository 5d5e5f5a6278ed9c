package bruteforce_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/bruteforce"
	"portcullis/fabricsm/topo"
)

// fabric has a switch with our adapter at port 1 and a host at port 2.
type fabric struct {
	topo     topo.Builder
	now      time.Time
	sw       topo.NodeID
	own      topo.PortID
	trusted  bool // the declared topology vouches for the switch
	declared bool // and for the host
	manager  bool // the host is another subnet manager
	accused  int
}

func newFabric() *fabric {
	f := &fabric{now: time.Unix(1000, 0), trusted: true, declared: true}
	f.sw = f.topo.AddNode(topo.Node{GUID: 1, Type: ib.NodeSwitch, NumPorts: 4})
	for i := range 2 {
		host := f.topo.AddNode(topo.Node{GUID: ib.GUID(2 + i), Type: ib.NodeCA, NumPorts: 1})
		p := f.topo.PortOf(host, 1)
		f.topo.Connect(p, f.topo.PortOf(f.sw, ib.PortNum(1+i)))
		if i == 0 {
			f.own = p
		}
	}
	return f
}

func (f *fabric) Now() time.Time                { return f.now }
func (f *fabric) Window() time.Duration         { return time.Minute }
func (f *fabric) Root() topo.NodeID             { return f.topo.Port(f.own).Node }
func (f *fabric) Own() topo.PortID              { return f.own }
func (f *fabric) LeadsOn(topo.PortID) bool      { return true }
func (f *fabric) VouchesFor(n topo.NodeID) bool { return n == f.sw && f.trusted }
func (f *fabric) IsDeclared(ib.Place) bool      { return f.declared }
func (f *fabric) IsManager(topo.PortID) bool    { return f.manager }
func (f *fabric) Accuse(ib.Place, ib.GUID)      { f.accused++ }
func (f *fabric) PlaceOf(p topo.PortID) ib.Place {
	return ib.Place{Switch: 1, Port: f.topo.Port(f.topo.Port(p).Peer).Num}
}

// TestCheckSMKey: only another key than before counts, shown in time by a host that is proven.
func TestCheckSMKey(t *testing.T) {
	way := mad.MakeRoute(2, 1) // the host's port of the switch, and our port
	for _, tt := range []struct {
		name string
		tune func(*fabric)
		keys []uint64
		wait time.Duration // between two
		want int
	}{
		{name: "one key", keys: []uint64{7}},
		{name: "the same key", keys: []uint64{7, 7, 7}},
		{name: "three keys", keys: []uint64{7, 8, 9}, want: 2},
		{name: "no key", keys: []uint64{0, 7, 0}},
		{name: "seldom", keys: []uint64{7, 8, 9}, wait: time.Minute},
		{name: "unknown switch", tune: func(f *fabric) { f.trusted = false }, keys: []uint64{7, 8, 9}},
		{name: "unknown host", tune: func(f *fabric) { f.declared = false }, keys: []uint64{7, 8, 9}},
		{name: "another manager", tune: func(f *fabric) { f.manager = true }, keys: []uint64{7, 8, 9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFabric()
			if tt.tune != nil {
				tt.tune(f)
			}
			d := bruteforce.New(f, &f.topo)
			for _, key := range tt.keys {
				d.CheckSMKey(&way, ib.NewSMKey(key))
				f.now = f.now.Add(tt.wait)
			}
			if f.accused != tt.want {
				t.Errorf("accused %d times, want %d", f.accused, tt.want)
			}
		})
	}
}

// TestReadQueue: a queue is read until it is empty, at most 32 notices for one reason.
func TestReadQueue(t *testing.T) {
	f := newFabric()
	d := bruteforce.New(f, &f.topo)
	p := f.topo.PortOf(f.sw, 0)
	if _, due := d.NextNotice(p); due {
		t.Error("a request is due without a reason")
	}
	if !d.ReadQueue(p) {
		t.Fatal("a switch that is vouched for is not read")
	}
	reads := 0
	for {
		taking, due := d.NextNotice(p)
		if !due {
			break
		}
		if taking != nil {
			if next := d.RecordTaken(p); next != bruteforce.Now {
				t.Fatalf("a notice that was taken is followed by %v", next)
			}
			continue
		}
		if reads++; reads > 100 {
			t.Fatal("reads without end")
		}
		n := mad.Notice{NoticeHeader: mad.NoticeHeader{Count: 1, Toggle: reads%2 == 0}}
		if next := d.RecordNotice(p, &n, make([]byte, mad.DataSize)); next != bruteforce.Now {
			t.Fatalf("a notice is followed by %v", next)
		}
	}
	if reads != 32 {
		t.Errorf("%d notices were read for one reason, want 32", reads)
	}
	d.ReadQueue(p)
	for i, want := range []bruteforce.Next{bruteforce.Later, bruteforce.Never} { // once more soon, as the first may be old
		if next := d.RecordNotice(p, &mad.Notice{}, make([]byte, mad.DataSize)); next != want {
			t.Errorf("empty queue, read %d: %v, want %v", i+1, next, want)
		}
	}
	d.Forget(p)
	if next := d.RecordTaken(p); next != bruteforce.Never {
		t.Errorf("a forgotten queue is asked again: %v", next)
	}
	if f.trusted = false; d.ReadQueue(p) {
		t.Error("a switch that is not vouched for is read")
	}
}
