package driver_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
)

// BenchmarkSAFlood measures how long hosts wait for paths while one host floods the port
// of the manager, and while it does not, in turns: run it with -benchtime 15x for 15 of
// each. Latencies are from when a question stands in the queue of its lane to when its
// answer is handed to the wire, and metrics are medians of the turns:
//
//	p50-µs, p99-µs              without the flood
//	flood-p50-µs, flood-p99-µs  with it
//	ratio                       of the p99s, of the medians
//	wait-p99-µs                 with it, until the question was received alone
//	lost                        questions, of all turns, that no answer came to
//	flood-MAD/s                 that were received; overrun/s found the queue full
func BenchmarkSAFlood(b *testing.B) {
	for _, kind := range floodKinds {
		b.Run(kind.name, func(b *testing.B) {
			r := newFloodRig(b)
			packets := kind.packets(b, r)
			to := &r.sa
			if !packets[0].IsSA() {
				to = &r.sm
			}
			var without, with []floodTurn
			for b.Loop() {
				without = append(without, r.turn(b, nil, nil))
				with = append(with, r.turn(b, to, packets))
			}
			report := func(name string, of []floodTurn, get func(*floodTurn) float64) float64 {
				var all []float64
				for i := range of {
					all = append(all, get(&of[i]))
				}
				slices.Sort(all)
				mid := all[len(all)/2]
				b.ReportMetric(mid, name)
				return mid
			}
			p50, p99 := func(t *floodTurn) float64 { return t.latency[0] }, func(t *floodTurn) float64 { return t.latency[1] }
			report("p50-µs", without, p50)
			before := report("p99-µs", without, p99)
			report("flood-p50-µs", with, p50)
			b.ReportMetric(report("flood-p99-µs", with, p99)/before, "ratio")
			report("wait-p99-µs", with, func(t *floodTurn) float64 { return t.wait })
			report("flood-MAD/s", with, func(t *floodTurn) float64 { return t.flooded })
			report("overrun/s", with, func(t *floodTurn) float64 { return t.overrun })
			lost := 0
			for i := range with {
				lost += with[i].lost + without[i].lost
			}
			b.ReportMetric(float64(lost), "lost")
			b.ReportMetric(0, "ns/op") // it is that of the schedule
		})
	}
}

const (
	// floodRate is how many MADs of the flood come a second: more than a kernel hands
	// out one by one.
	floodRate = 1_000_000
	// floodQueue is how many packets wait in a lane; later ones are lost.
	floodQueue = 4096
	// askEvery is the mean time between questions of all askers: 8 hosts, 500 a second.
	askEvery  = time.Second / 4000
	floodTime = 500 * time.Millisecond
	askers    = 8
	floodPKey = ib.PKey(0x8001)
)

// inlet is the end of a wire: a queue of one lane. A flood comes at its times without a goroutine that makes it. Packets
// that came since are queued at the next receive, so that it costs no more than receiving does. A reader waits in the
// kernel, as at a socket.
type inlet struct {
	mu     sync.Mutex
	wakes  int       // eventfd
	queue  []arrived // a ring
	head   int
	n      int
	closed bool

	shares *transport.Shares // of the lane of subnet administration, as of ibsim's port

	flood    []transport.Packet // in turns; nil: none
	next     int                // number of the next of it
	began    time.Time
	overrun  int
	received int // of the flood

	asker *asker  // nil: none here
	asked []asked // of this turn
}

// arrived is a packet in a queue.
type arrived struct {
	packet *transport.Packet
	asked  *asked // of a counted asker, nil: others
}

// asked is a question: times of the monotonic clock, 0: not yet.
type asked struct {
	packet                transport.Packet
	came, taken, answered time.Duration
}

func (q *inlet) init(b *testing.B) {
	b.Helper()
	q.queue = make([]arrived, floodQueue)
	var err error
	if q.wakes, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Close(q.wakes) })
}

// wake wakes the waiting reader.
func (q *inlet) wake() { _, _ = unix.Write(q.wakes, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// push appends one to the queue. Called with mu held.
func (q *inlet) push(a arrived) bool {
	if q.n == len(q.queue) || q.shares != nil && !q.shares.Take(a.packet.LID, q.n) {
		return false
	}
	q.queue[(q.head+q.n)%len(q.queue)] = a
	q.n++
	return true
}

// flow queues the packets that are due. Called with mu held.
func (q *inlet) flow() {
	if q.asker != nil {
		for n := q.asker.take(); n < q.asker.came() && n < len(q.asked); n++ {
			a := &q.asked[n]
			a.came = q.asker.at(n)
			q.push(arrived{&a.packet, a})
			q.asker.taken(n + 1)
		}
	}
	if q.flood == nil {
		return
	}
	due := int(time.Since(q.began) * floodRate / time.Second)
	for ; q.next < due && q.push(arrived{packet: &q.flood[q.next%len(q.flood)]}); q.next++ {
	}
	q.overrun += due - q.next
	q.next = due
}

// put has a packet come now.
func (q *inlet) put(a arrived) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flow()
	if q.push(a) {
		q.wake()
	}
}

// move takes what there is.
func (q *inlet) move(to []transport.Packet) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0, transport.ErrClosed
	}
	q.flow()
	now := monotonic()
	for ; n < len(to) && q.n > 0; n++ {
		a := &q.queue[q.head]
		to[n] = *a.packet
		if q.shares != nil {
			q.shares.Release(to[n].LID)
		}
		if a.asked != nil {
			a.asked.taken = now
		} else {
			q.received++
		}
		q.head = (q.head + 1) % len(q.queue)
		q.n--
	}
	return n, nil
}

// wait waits until there is something, at most d if that is not negative. While a flood
// comes there always is, soon.
func (q *inlet) wait(d time.Duration) error {
	q.mu.Lock()
	q.flow()
	something, closed := q.n > 0, q.closed
	if q.flood != nil {
		d = 0
	}
	q.mu.Unlock()
	switch {
	case closed:
		return transport.ErrClosed
	case something:
		return nil
	}
	var patience *unix.Timespec
	if d >= 0 {
		ts := unix.NsecToTimespec(d.Nanoseconds())
		patience = &ts
	}
	_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(q.wakes), Events: unix.POLLIN}}, patience, nil)
	var count [8]byte
	_, _ = unix.Read(q.wakes, count[:])
	return nil
}

// begin has a flood come from now on; end ends it and drops waiting packets.
func (q *inlet) begin(flood []transport.Packet) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flood, q.next, q.began, q.overrun, q.received = flood, 0, time.Now(), 0, 0
	q.wake()
}

func (q *inlet) end() (received, overrun int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flow()
	q.flood = nil
	return q.received, q.overrun
}

// floodRig is a manager of a simulated fabric. Its port is that of the simulator, with inlets in between: requests of hosts
// and the flood do not cost the simulator's time.
type floodRig struct {
	sim.Port
	sa, sm inlet
	view   atomic.Pointer[sm.View]
	hosts  []ib.GUID

	mu    sync.Mutex // of the following fields
	asked []asked    // of this turn; its TID is the number, and turn before it
	turns ib.TID
}

// floodTurn is the result of a turn; times in µs.
type floodTurn struct {
	latency          [2]float64 // p50, p99
	wait             float64    // p99
	flooded, overrun float64    // a second
	lost             int
}

func (r *floodRig) Receive(p []transport.Packet) (int, error) {
	for {
		if n, err := r.sm.move(p); n > 0 || err != nil {
			return n, err
		}
		if err := r.sm.wait(-1); err != nil {
			return 0, err
		}
	}
}

func (r *floodRig) Close() error {
	for _, q := range []*inlet{&r.sa, &r.sm} {
		q.mu.Lock()
		q.closed = true
		q.wake()
		q.mu.Unlock()
	}
	return r.Port.Close()
}

func (r *floodRig) SA() (transport.SALane, error) { return floodLane{r}, nil }

// pump brings the packets from the fabric.
func (r *floodRig) pump() {
	for {
		buf := make([]transport.Packet, 64)
		n, err := r.Port.Receive(buf)
		if err != nil {
			return
		}
		for i := range buf[:n] {
			r.sm.put(arrived{packet: &buf[i]})
		}
	}
}

// floodLane is the lane of subnet administration.
type floodLane struct{ r *floodRig }

func (l floodLane) TrySend(p []transport.Packet) (int, error) {
	r := l.r
	r.mu.Lock()
	defer r.mu.Unlock()
	now := monotonic()
	for i := range p {
		tid := p[i].MAD.TID()
		n := int(tid & math.MaxUint32)
		if tid>>32 == r.turns && n < len(r.asked) && p[i].MAD.Method() == mad.MethodGetResp && p[i].MAD.Status() == mad.StatusOK {
			r.asked[n].answered = now
		}
	}
	return len(p), nil
}

func (l floodLane) TryReceive(p []transport.Packet) (int, error) { return l.r.sa.move(p) }
func (l floodLane) Wait() error                                  { return l.r.sa.wait(-1) }
func (l floodLane) Pause(d time.Duration) error                  { return l.r.sa.wait(d) }
func (l floodLane) Dropped() uint64                              { return 0 }

// newFloodRig brings a fabric up, with all hosts in a partition.
func newFloodRig(b *testing.B) *floodRig {
	b.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 36, Radix: 12})
	if err != nil {
		b.Fatal(err)
	}
	agent, err := sa.New(sa.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	r := &floodRig{}
	r.sa.init(b)
	r.sa.shares = transport.NewShares(floodQueue)
	r.sa.asker = startAsker(b, r.sa.wakes)
	r.sm.init(b)
	if r.Port, err = sim.New(l).Attach("sm", true); err != nil {
		b.Fatal(err)
	}
	for i := range askers + 2 {
		r.hosts = append(r.hosts, l.Find(fmt.Sprintf("h%d", i+1)).PortGUID(1))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(r.pump)
	intents := make(chan sm.Intent, 1)
	work.Go(func() {
		if err := driver.Run(ctx, driver.Options{
			Port: r, Core: sm.Config{Enforcement: sm.Accepted}, SA: agent, Store: &driver.Memory{},
			OnView: func(v *sm.View) {
				if v.Settled {
					r.view.Store(v)
				}
			},
		}, intents); err != nil && ctx.Err() == nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { cancel(); _ = r.Close(); work.Wait() })
	r.until(b, "the fabric is up", func() bool { return r.view.Load() != nil })
	in := sm.Intent{Revision: 1}
	f := r.view.Load().Fabric
	for _, g := range r.hosts {
		in.Grants = append(in.Grants, sm.Grant{GUID: g, PKey: floodPKey, Place: f.PlaceOf(f.PortByGUID(g))})
	}
	intents <- in
	r.until(b, "partitions are there", func() bool { return r.view.Load().Revision == 1 })
	r.until(b, "paths are there", func() bool { t := r.turn(b, nil, nil); return t.lost == 0 })
	return r
}

func (r *floodRig) until(b *testing.B, what string, done func() bool) {
	b.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			b.Fatalf("%s: not within a minute", what)
		}
	}
}

// lid is that of a host.
func (r *floodRig) lid(host int) ib.LID {
	f := r.view.Load().Fabric
	id := f.PortByGUID(r.hosts[host])
	if id == topo.None {
		return 0
	}
	return f.Port(id).LID
}

// path is a question of a host for the way to the next.
func (r *floodRig) path(host int) (p transport.Packet) {
	r.header(&p, host, mad.MethodGet, mad.AttrPathRecord)
	p.MAD.SetComponentMask(mad.PathComponentSGID | mad.PathComponentDGID)
	rec := mad.PathRecord{SGID: r.gid(host), DGID: r.gid((host + 1) % len(r.hosts))}
	_ = mad.Encode(p.MAD.SAData(), &rec)
	return p
}

func (r *floodRig) gid(host int) ib.GID { return ib.MakeGID(ib.DefaultPrefix, r.hosts[host]) }

// header makes a request of a host to subnet administration.
func (r *floodRig) header(p *transport.Packet, host int, method mad.Method, attr mad.AttrID) {
	p.LID, p.QP = r.lid(host), 1
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, Attr: attr})
}

// turn has hosts ask for a time, on an open loop, while a flood comes.
func (r *floodRig) turn(b *testing.B, to *inlet, flood []transport.Packet) (t floodTurn) {
	b.Helper()
	runtime.GC()
	count := int(floodTime / askEvery)
	asked := make([]asked, count)
	r.mu.Lock()
	r.turns++
	r.asked = asked
	for i := range asked {
		asked[i].packet = r.path(1 + i%askers)
		asked[i].packet.MAD.SetTID(r.turns<<32 | ib.TID(i))
	}
	r.mu.Unlock()
	r.sa.mu.Lock()
	r.sa.asked = asked
	r.sa.mu.Unlock()
	if to != nil {
		to.begin(flood)
	}
	began := monotonic()
	r.sa.asker.ask(b, count)
	took := (monotonic() - began).Seconds()
	if to != nil {
		received, overrun := to.end()
		t.flooded, t.overrun = float64(received)/took, float64(overrun)/took
	}
	r.quiet()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sa.mu.Lock()
	defer r.sa.mu.Unlock()
	var all, wait []float64
	for i := range asked {
		a := &asked[i]
		if a.answered == 0 {
			t.lost++
			all, wait = append(all, math.Inf(1)), append(wait, math.Inf(1))
			continue
		}
		all = append(all, float64(a.answered-a.came)/1000)
		wait = append(wait, float64(a.taken-a.came)/1000)
	}
	slices.Sort(all)
	slices.Sort(wait)
	t.latency, t.wait = [2]float64{all[count/2], all[count*99/100]}, wait[count*99/100]
	return t
}

// quiet waits until each question of the turn has its answer, or no more answers come:
// none within 20 ms.
func (r *floodRig) quiet() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for was := -1; ; <-tick.C {
		open := 0
		r.mu.Lock()
		for i := range r.asked {
			if r.asked[i].answered == 0 {
				open++
			}
		}
		r.mu.Unlock()
		if open == 0 || open == was {
			return
		}
		was = open
	}
}

// floodKinds are what host 0 sends.
var floodKinds = []struct {
	name    string
	packets func(*testing.B, *floodRig) []transport.Packet
}{
	{"paths", func(_ *testing.B, r *floodRig) []transport.Packet { return []transport.Packet{r.path(0)} }},
	{"wrong SA_Keys", func(_ *testing.B, r *floodRig) (all []transport.Packet) {
		for i := range 1024 {
			p := r.path(0)
			p.MAD.SetSAKey(ib.NewSAKey(uint64(i + 1)))
			all = append(all, p)
		}
		return all
	}},
	{"tables", func(_ *testing.B, r *floodRig) []transport.Packet {
		var nodes transport.Packet
		paths := r.path(0)
		paths.MAD.SetMethod(mad.MethodGetTable)
		r.header(&nodes, 0, mad.MethodGetTable, mad.AttrNodeRecord)
		return tids(1024, paths, nodes)
	}},
	{"garbage of RMPP", func(_ *testing.B, r *floodRig) (all []transport.Packet) {
		for i := range 4096 {
			var p transport.Packet
			method := []mad.Method{mad.MethodGetMulti, mad.MethodGetTable, mad.MethodGetTableResp}[i%3]
			r.header(&p, 0, method, mad.AttrMultiPathRecord)
			p.MAD.SetRMPPHeader(mad.RMPPHeader{
				Version: uint8(i/64) & 1, Type: mad.RMPPType(i % 6), Flags: mad.RMPPFlags(i/6) & 7, Status: mad.RMPPStatus(i), Data1: uint32(i / 8 % 5), Data2: uint32(i * 37 % 300),
			})
			p.MAD.SetTID(ib.TID(i / 4))
			all = append(all, p)
		}
		return all
	}},
	{"registrations", func(b *testing.B, r *floodRig) (all []transport.Packet) {
		for i := range 512 {
			for _, method := range []mad.Method{mad.MethodSet, mad.MethodDelete} {
				var p transport.Packet
				r.header(&p, 0, method, mad.AttrServiceRecord)
				p.MAD.SetComponentMask(mad.ServiceComponentServiceID | mad.ServiceComponentServiceGID | mad.ServiceComponentServicePKey | mad.ServiceComponentServiceLease | mad.ServiceComponentServiceName)
				rec := mad.ServiceRecord{ServiceID: ib.ServiceID(i/2 + 1), ServiceGID: r.gid(0), ServicePKey: floodPKey, ServiceLease: 600}
				copy(rec.ServiceName[:], "flood")
				encode(b, &p, &rec)
				all = append(all, p)
			}
			var p transport.Packet
			r.header(&p, 0, mad.MethodSet, mad.AttrInformInfo)
			encode(b, &p, &mad.InformInfo{
				LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: uint8(i % 2), Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers,
			})
			all = append(all, p)
		}
		return tids(1, all...)
	}},
	{"traps", func(b *testing.B, r *floodRig) []transport.Packet {
		p := transport.Packet{LID: r.lid(0)}
		p.MAD.SetHeader(mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodTrap, Attr: mad.AttrNotice})
		if err := mad.Encode(p.MAD.Data(), &mad.Notice{NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapLinkStateChange, IssuerLID: r.lid(0)}}); err != nil {
			b.Fatal(err)
		}
		return tids(1024, p)
	}},
	{"communication management", func(_ *testing.B, r *floodRig) []transport.Packet {
		p := transport.Packet{LID: r.lid(0), QP: 1}
		p.MAD.SetHeader(mad.Header{Class: mad.ClassComMgt, ClassVersion: 2, Method: mad.MethodSend, Attr: 0x0010})
		return tids(1024, p)
	}},
}

// tids returns packets over and over, each as another transaction.
func tids(times int, packets ...transport.Packet) (all []transport.Packet) {
	for range times {
		for _, p := range packets {
			p.MAD.SetTID(ib.TID(len(all) + 1))
			all = append(all, p)
		}
	}
	return all
}

func encode[T any](b *testing.B, p *transport.Packet, rec *T) {
	b.Helper()
	if err := mad.Encode(p.MAD.SAData(), rec); err != nil {
		b.Fatal(err)
	}
}
