package readback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/readback"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

var (
	red, blue = proof.Owner{Kind: proof.Tenant, Name: "red"}, proof.Owner{Kind: proof.Tenant, Name: "blue"}
	owners    = map[string]proof.Owner{"h1": red, "h2": blue, "h3": red, "h4": blue}
	keys      = map[proof.Owner]ib.PKey{red: 0x8101, blue: 0x8202}
)

func plan(t testing.TB) *netlist.Netlist {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// declared is the options of a reader that knows the netlist.
func declared(l *netlist.Netlist) reader.Options {
	return reader.Options{Inbound: proof.InboundMembership, Owner: func(_ ib.Place, is reader.Identity) proof.Owner {
		for i := range l.Nodes {
			if n := &l.Nodes[i]; n.GUID == is.Node {
				if o, ok := owners[n.Name]; ok {
					return o
				}
				return proof.Owner{Kind: proof.Infrastructure}
			}
		}
		return proof.Owner{}
	}}
}

// fabric returns a simulated fabric with red and blue, as the Subnet Manager set it.
func fabric(t testing.TB, l *netlist.Netlist) *sim.Fabric {
	t.Helper()
	stage, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	var grants []sm.Grant
	for _, host := range []string{"h1", "h2", "h3", "h4"} {
		grants = append(grants, stage.GrantOf(host, 1, keys[owners[host]]))
	}
	stage.Start()
	stage.Want(sm.Intent{Revision: 1, Grants: grants})
	if err := stage.Settle(time.Minute); err != nil {
		t.Fatal(err)
	}
	stage.Crash()
	return stage.Fabric
}

// compare compares what was read with the simulator's own view.
func compare(t *testing.T, l *netlist.Netlist, f *sim.Fabric, found *reader.Found) {
	t.Helper()
	if len(found.Unknown) > 0 || found.Strays > 0 || len(found.Fabric.Devices) != len(l.Nodes) {
		t.Errorf("%d devices of %d, unknown %v, %d strays", len(found.Fabric.Devices), len(l.Nodes), found.Unknown, found.Strays)
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		at := slices.IndexFunc(found.Fabric.Devices, func(d proof.Device) bool { return d.GUID == n.GUID })
		if at < 0 {
			t.Errorf("%s was not found", n.Name)
			continue
		}
		for num := 1; num < len(n.Ports); num++ {
			if n.Ports[num].Peer == "" {
				continue
			}
			got := slices.DeleteFunc(slices.Clone(found.Fabric.Devices[at].Ports[num].PKeys.Value), func(k ib.PKey) bool { return !k.Valid() })
			if want := f.PKeys(n.Name, ib.PortNum(num)); !slices.Equal(got, want) {
				t.Errorf("%s port %d: P_Keys %v, want %v", n.Name, num, got, want)
			}
		}
	}
	result, err := proof.Prove(found.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	if depth := result.Pair(red, blue).Depth(); depth != proof.HeldByEitherSide {
		t.Errorf("red and blue are held apart by %v", depth)
	}
}

// The same is read in the simulator's process and over its socket.
func TestReadsSimulator(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f := fabric(t, l)
	inside, err := f.Attach("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	client := simtest.Serve(t, f)
	outside, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: client.Socket, Node: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	for name, port := range map[string]transport.Port{"inside": inside, "over the socket": outside} {
		t.Run(name, func(t *testing.T) {
			found, err := readback.Read(t.Context(), port, readback.Options{Reader: declared(l), Timeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, l, f, found)
			if _, err := port.Receive(make([]transport.Packet, 1)); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("the port is not closed afterwards: %v", err)
			}
		})
	}
}

// Beside a Subnet Manager at the same port of ibsim, the reader gets its own answers and no others, and so does the Subnet
// Manager.
func TestReadsIbsimBesideManager(t *testing.T) {
	t.Parallel()
	l := plan(t)
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	lab := ibsimtest.Start(t, text.Bytes())
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan struct{})
	var once sync.Once
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- driver.Run(ctx, driver.Options{
			Port: port, Core: sm.Config{Enforcement: sm.Accepted}, Store: &forgetful{},
			OnView: func(v *sm.View) {
				if v.Settled {
					once.Do(func() { close(settled) })
				}
			},
		}, nil)
	}()
	for range 3 { // while it sweeps, and later
		read(t, l, lab.Socket())
	}
	select {
	case <-settled:
	case err := <-ended:
		t.Fatalf("the Subnet Manager ended: %v", err)
	case <-t.Context().Done():
		t.Fatal("the Subnet Manager does not settle the fabric")
	}
	found := read(t, l, lab.Socket())
	for i := range found.Fabric.Devices {
		d := &found.Fabric.Devices[i]
		for num := 1; num < len(d.Ports); num++ {
			p := &d.Ports[num]
			isDefault := func(k ib.PKey) bool { return k.Base() == ib.DefaultPKeyFull.Base() }
			if p.Cable.Port != 0 && (p.State != proof.Known(ib.PortActive) || !slices.ContainsFunc(p.PKeys.Value, isDefault)) {
				t.Errorf("%s port %d: state %v, P_Keys %v", d.Name, num, p.State, p.PKeys)
			}
		}
	}
	unread := slices.ContainsFunc(found.Unknown, func(u reader.Unknown) bool { return !u.Matters() })
	if len(found.Lanes) < 2*len(l.Nodes) || unread {
		t.Errorf("%d SLtoVL tables were read, unknown: %v", len(found.Lanes), found.Unknown)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the Subnet Manager ended: %v", err)
	}
}

func read(t *testing.T, l *netlist.Netlist, socket string) *reader.Found {
	t.Helper()
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: socket, Node: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := readback.Read(t.Context(), port, readback.Options{Reader: declared(l), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if found.Strays > 0 || len(found.Fabric.Devices) != len(l.Nodes) {
		t.Errorf("%d devices of %d, %d strays, unknown: %v", len(found.Fabric.Devices), len(l.Nodes), found.Strays, found.Unknown)
	}
	return found
}

// forgetful is a store of facts that keeps none.
type forgetful struct{}

func (*forgetful) Load() ([]sm.Fact, error) { return nil, nil }
func (*forgetful) Save([]sm.Fact) error     { return nil }

// wire is a port whose fabric is a simulator, that loses, delays and counts packets.
type wire struct {
	station *sim.Station
	lose    func(n int) bool // nil: nothing
	broken  int              // the port fails after so many requests; 0: never

	mu     sync.Mutex
	more   *sync.Cond
	queue  []transport.Packet
	closed bool
	failed error
	begun  time.Time
	at     []time.Duration // of each request
	ids    map[ib.TID]int
}

func newWire(t *testing.T, f *sim.Fabric) *wire {
	t.Helper()
	s, err := f.Station("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{station: s, begun: time.Now(), ids: map[ib.TID]int{}}
	w.more = sync.NewCond(&w.mu)
	return w
}

func (w *wire) Send(packets []transport.Packet) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range packets {
		w.at = append(w.at, time.Since(w.begun))
		w.ids[packets[i].MAD.TID()]++
		if w.broken > 0 && len(w.at) >= w.broken {
			w.failed = fmt.Errorf("cable pulled: %w", transport.ErrLost)
		}
		if w.lose == nil || !w.lose(len(w.at)) {
			w.queue = append(w.queue, w.station.Exchange(packets[i:i+1], nil)...)
		}
	}
	w.more.Broadcast()
	return len(packets), nil
}

func (w *wire) Receive(packets []transport.Packet) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 && !w.closed && w.failed == nil {
		w.more.Wait()
	}
	switch {
	case w.closed:
		return 0, transport.ErrClosed
	case w.failed != nil:
		return 0, w.failed
	}
	n := copy(packets, w.queue)
	w.queue = w.queue[n:]
	return n, nil
}

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.more.Broadcast()
	return nil
}

func (*wire) SetIsSM(bool) error { return nil }
func (w *wire) GUID() ib.GUID    { return w.station.GUID() }

// In no second more requests are sent than the rate says, and each has an id of its own.
func TestRate(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f := fabric(t, l)
	synctest.Test(t, func(t *testing.T) {
		const rate = 200
		w := newWire(t, f)
		found, err := readback.Read(t.Context(), w, readback.Options{Reader: declared(l), Rate: rate})
		if err != nil {
			t.Fatal(err)
		}
		if found.Sent != len(w.at) || found.Sent < 2*rate {
			t.Errorf("%d requests are said to be sent, %d were", found.Sent, len(w.at))
		}
		for i := rate + 5; i < len(w.at); i++ {
			if took := w.at[i] - w.at[i-rate-5]; took < time.Second {
				t.Fatalf("requests %d to %d were sent in %v", i-rate-5, i, took)
			}
		}
		if want := time.Duration(len(w.at)) * time.Second / rate; w.at[len(w.at)-1] > want+want/4 {
			t.Errorf("%d requests took %v, at a rate of %d", len(w.at), w.at[len(w.at)-1], rate)
		}
		for id, n := range w.ids {
			if n > 1 || id == 0 || id>>32 != 0 {
				t.Errorf("id %#x was used %d times", uint64(id), n)
			}
		}
	})
}

// In a hurry the rest is read at the default rate, which is never exceeded either.
func TestHurry(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f := fabric(t, l)
	synctest.Test(t, func(t *testing.T) {
		w, hurry := newWire(t, f), make(chan struct{})
		time.AfterFunc(2*time.Second, func() { close(hurry) })
		found, err := readback.Read(t.Context(), w, readback.Options{Reader: declared(l), Rate: 10, Hurry: hurry})
		if err != nil {
			t.Fatal(err)
		}
		slow := 0
		for _, at := range w.at {
			if at < 2*time.Second {
				slow++
			}
		}
		if slow < 19 || slow > 22 {
			t.Errorf("%d requests in 2 s at a rate of 10 in a second", slow)
		}
		fast := len(w.at) - slow
		least, took := time.Duration(fast-100)*time.Second/readback.DefaultRate, w.at[len(w.at)-1]-2*time.Second
		if fast < 200 || took < least || took > time.Second {
			t.Errorf("%d requests took %v in a hurry, want %v at least and much less than a second for each ten", fast, took, least)
		}
		if found.Sent != len(w.at) {
			t.Errorf("%d requests are said to be sent, %d were", found.Sent, len(w.at))
		}
	})
}

// What gets lost is asked again; what is lost each time is unknown, and takes the time-outs of its attempts.
func TestLoss(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f := fabric(t, l)
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, f)
		w.lose = func(n int) bool { return n%9 == 4 }
		o := declared(l)
		o.Attempts = 8 // one request may be the ninth several times in a row
		found, err := readback.Read(t.Context(), w, readback.Options{Reader: o, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, l, f, found)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, f)
		w.lose = func(n int) bool { return n > 40 && n <= 160 }
		o := declared(l)
		o.Attempts = 2
		found, err := readback.Read(t.Context(), w, readback.Options{Reader: o, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Unknown) == 0 || time.Since(w.begun) < 2*time.Second || time.Since(w.begun) > time.Minute {
			t.Errorf("after %v unknown is %v", time.Since(w.begun), found.Unknown)
		}
	})
}

// There is no result if the caller cancels, the port fails, or the own port does not answer.
func TestNoResult(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f := fabric(t, l)
	enough := errors.New("enough")
	for _, test := range []struct {
		name   string
		set    func(w *wire)
		cancel time.Duration
		want   error
	}{
		{"cancelled", func(*wire) {}, 100 * time.Millisecond, enough},
		{"cancelled while nothing answers", func(w *wire) { w.lose = func(n int) bool { return n > 5 } }, time.Minute, enough},
		{"port lost", func(w *wire) { w.broken = 30 }, 0, transport.ErrLost},
		{"own port silent", func(w *wire) { w.lose = func(int) bool { return true } }, 0, reader.ErrNotItself},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t, f)
				test.set(w)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, func() { cancel(enough) })
				}
				o := readback.Options{Reader: declared(l), Rate: 100, Timeout: time.Hour}
				if test.cancel == 0 {
					o.Timeout = time.Second
				}
				found, err := readback.Read(ctx, w, o)
				if !errors.Is(err, test.want) || found != nil || !w.closed {
					t.Errorf("found %v, error %v, want %v", found, err, test.want)
				}
				if took := time.Since(w.begun); test.cancel > 0 && took != test.cancel {
					t.Errorf("it ended after %v", took)
				}
			})
		})
	}
}

// Options that make no sense are refused, and the port is closed all the same.
func TestOptions(t *testing.T) {
	t.Parallel()
	l := plan(t)
	f := fabric(t, l)
	for name, spoil := range map[string]func(*readback.Options){
		"draw":     func(o *readback.Options) { o.Reader.Draw = func() uint32 { return 1 } },
		"rate":     func(o *readback.Options) { o.Rate = -1 },
		"timeout":  func(o *readback.Options) { o.Timeout = -1 },
		"window":   func(o *readback.Options) { o.Reader.Window = -1 },
		"no owner": func(o *readback.Options) { o.Reader.Owner = nil },
	} {
		w, o := newWire(t, f), readback.Options{Reader: declared(l)}
		spoil(&o)
		if _, err := readback.Read(t.Context(), w, o); err == nil || !w.closed || len(w.at) > 0 {
			t.Errorf("%s: error %v, closed %v, %d requests", name, err, w.closed, len(w.at))
		}
	}
}
