//go:build vm

package softhca_test

import (
	"strconv"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/verbs"
)

// end is a program on a host with a queue pair.
type end struct {
	*verbs.Context
	cq     *verbs.CQ
	qp     *verbs.QP
	memory *verbs.Memory
	lid    uint16
	got    []verbs.Completion
}

const memorySize = 1 << 16

func newEnd(t *testing.T, name string, kind verbs.Kind) *end {
	t.Helper()
	e := &end{Context: open(t, name)}
	var err error
	if e.cq, err = e.NewCQ(64); err != nil {
		t.Fatal(err)
	}
	if e.qp, err = e.NewQP(kind, e.cq); err != nil {
		t.Fatal(err)
	}
	if e.memory, err = e.Register(memorySize); err != nil {
		t.Fatal(err)
	}
	lid, err := strconv.ParseUint(adapter.PortFile(t, name, 1, "lid"), 0, 16)
	if err != nil {
		t.Fatal(err)
	}
	e.lid = uint16(lid)
	return e
}

// completion waits for the completion of one work request.
func (e *end) completion(t *testing.T, id uint64, limit time.Duration) verbs.Completion {
	t.Helper()
	var found *verbs.Completion
	guest.Eventually(t, limit, "work request "+strconv.FormatUint(id, 10)+" was not completed", func() bool {
		more, err := e.cq.Poll()
		if err != nil {
			t.Fatal(err)
		}
		e.got = append(e.got, more...)
		for i := range e.got {
			if e.got[i].ID == id {
				c := e.got[i]
				e.got = append(e.got[:i], e.got[i+1:]...)
				found = &c
				return true
			}
		}
		return false
	})
	return *found
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hosts are two hosts with a common partition at index 1, on a fabric that OpenSM brought up.
func hosts(t *testing.T, kind verbs.Kind) (m manager, a, b *end) {
	t.Helper()
	f := adapter.NewFabric(t)
	sm := f.Plug(t, "sm", "mlx5_2")
	f.Plug(t, "h1", "mlx5_0")
	f.Plug(t, "h2", "mlx5_1")
	adapter.OpenSM(t, "mlx5_2", "-Z", "off") // tables are set by hand below
	adapter.Pull(t, sm, "mlx5_2")
	m = newManager(t, f)
	m.pkeys(t, h1Port, ib.DefaultPKeyFull, 0x8005)
	m.pkeys(t, h2Port, ib.DefaultPKeyFull, 0x8005)
	return m, newEnd(t, "mlx5_0", kind), newEnd(t, "mlx5_1", kind)
}

// Ports of the leaf to which the hosts are connected.
const h1Port, h2Port = 2, 3

const datagramKey = 0x1234

// TestDatagrams checks that datagrams reach only receivers that have their P_Key.
func TestDatagrams(t *testing.T) {
	m, a, b := hosts(t, verbs.UD)
	for _, e := range []*end{a, b} {
		check(t, e.qp.Init(verbs.Path{Port: 1, PKeyIndex: 1, QKey: datagramKey}))
		for i := range 4 {
			check(t, e.qp.Receive(uint64(100+i), e.memory, 8192*(i+1), 4096))
		}
		check(t, e.qp.Connect(verbs.Path{}))
	}
	to, err := a.Address(1, b.lid)
	check(t, err)
	copy(a.memory.Bytes, "from h1")
	check(t, a.qp.SendTo(1, a.memory, 0, 7, to, b.qp.Number, datagramKey))
	if c := a.completion(t, 1, soon); c.Status != verbs.Success {
		t.Errorf("the send ended with %d", c.Status)
	}
	c := b.completion(t, 100, soon)
	if got := string(b.memory.Bytes[8192+verbs.GRHSize:][:7]); c.Status != verbs.Success || c.Length != verbs.GRHSize+7 || c.Source != a.qp.Number || got != "from h1" {
		t.Errorf("received %q: %+v", got, c)
	}
	// Another Q_Key: dropped and counted.
	check(t, a.qp.SendTo(2, a.memory, 0, 7, to, b.qp.Number, datagramKey+1))
	a.completion(t, 2, soon)
	guest.Eventually(t, soon, "the wrong Q_Key was not counted", func() bool { return adapter.Counter(t, "mlx5_1", 1, "receive_bad_qkey") == 1 })
	// The receiver leaves the partition: the fabric's port refuses the packet.
	m.pkeys(t, h2Port, ib.DefaultPKeyFull, 0)
	before := m.f.PortInfo("h2", 1).PKeyViolations
	check(t, a.qp.SendTo(3, a.memory, 0, 7, to, b.qp.Number, datagramKey))
	if c := a.completion(t, 3, soon); c.Status != verbs.Success {
		t.Errorf("a datagram's sender learned %d", c.Status)
	}
	guest.Eventually(t, soon, "the wrong P_Key was not counted", func() bool { return m.f.PortInfo("h2", 1).PKeyViolations > before })
	// The sender leaves it too: nothing is sent.
	m.pkeys(t, h1Port, ib.DefaultPKeyFull, 0)
	guest.Eventually(t, soon, "a packet was sent without P_Key", func() bool {
		check(t, a.qp.SendTo(4, a.memory, 0, 7, to, b.qp.Number, datagramKey))
		a.completion(t, 4, soon)
		return adapter.Counter(t, "mlx5_0", 1, "send_bad_pkey") > 0
	})
	more, err := b.cq.Poll()
	if check(t, err); len(more) > 0 {
		t.Errorf("%d datagrams came that should not: %+v", len(more), more)
	}
}

// connect makes a connection between two ends.
func connect(t *testing.T, a, b *end) {
	t.Helper()
	for _, e := range []*end{a, b} {
		check(t, e.qp.Init(verbs.Path{Port: 1, PKeyIndex: 1}))
		for i := range 4 {
			check(t, e.qp.Receive(uint64(100+i), e.memory, 4096*(i+8), 4096))
		}
	}
	check(t, a.qp.Connect(verbs.Path{Port: 1, LID: b.lid, QP: b.qp.Number, Timeout: 14, Retries: 3}))
	check(t, b.qp.Connect(verbs.Path{Port: 1, LID: a.lid, QP: a.qp.Number, Timeout: 14, Retries: 3}))
}

// A live connection ends when its partition is taken away from one of the two hosts.
func TestConnectionLosesItsPartition(t *testing.T) {
	for name, who := range map[string]ib.PortNum{"the sender's": h1Port, "the receiver's": h2Port} {
		t.Run(name, func(t *testing.T) {
			m, a, b := hosts(t, verbs.RC)
			connect(t, a, b)
			for i := range 2 {
				copy(a.memory.Bytes, "message "+strconv.Itoa(i))
				check(t, a.qp.Send(uint64(i), a.memory, 0, 9))
				if c := a.completion(t, uint64(i), soon); c.Status != verbs.Success {
					t.Fatalf("message %d ended with %d", i, c.Status)
				}
				c := b.completion(t, uint64(100+i), soon)
				if got := string(b.memory.Bytes[4096*(i+8):][:9]); c.Status != verbs.Success || c.Length != 9 || got != "message "+strconv.Itoa(i) {
					t.Fatalf("received %q: %+v", got, c)
				}
			}
			m.pkeys(t, who, ib.DefaultPKeyFull, 0)
			begin := time.Now()
			check(t, a.qp.Send(10, a.memory, 0, 9))
			check(t, a.qp.Send(11, a.memory, 0, 9))
			if c := a.completion(t, 10, 3*soon); c.Status != verbs.RetryExceeded {
				t.Errorf("the message ended with %d, want %d: retries exceeded", c.Status, verbs.RetryExceeded)
			}
			t.Logf("the sender was told after %v", time.Since(begin))
			if c := a.completion(t, 11, soon); c.Status != verbs.Flushed {
				t.Errorf("the message behind it ended with %d, want %d: flushed", c.Status, verbs.Flushed)
			}
			if c := a.completion(t, 100, soon); c.Status != verbs.Flushed {
				t.Errorf("its receives ended with %d, want flushed", c.Status)
			}
			if s, err := a.qp.State(); err != nil || s != verbs.Error {
				t.Errorf("the queue pair is in state %d, %v: want error", s, err)
			}
			if more, _ := b.cq.Poll(); len(more) > 0 {
				t.Errorf("%d messages came without partition", len(more))
			}
			if adapter.Counter(t, "mlx5_0", 1, "retries") == 0 {
				t.Error("nothing was sent again")
			}
		})
	}
}

// A connection waits for a receiver that has no memory posted, and ends when it posts none.
func TestConnectionWithoutReceives(t *testing.T) {
	_, a, b := hosts(t, verbs.RC)
	check(t, a.qp.Init(verbs.Path{Port: 1, PKeyIndex: 1}))
	check(t, b.qp.Init(verbs.Path{Port: 1, PKeyIndex: 1}))
	check(t, a.qp.Connect(verbs.Path{Port: 1, LID: b.lid, QP: b.qp.Number, Timeout: 14, Retries: 3}))
	check(t, b.qp.Connect(verbs.Path{Port: 1, LID: a.lid, QP: a.qp.Number, Timeout: 14, Retries: 3}))
	check(t, a.qp.Send(1, a.memory, 0, 16))
	if c := a.completion(t, 1, soon); c.Status != verbs.RNRRetryExceeded {
		t.Errorf("the message ended with %d, want %d", c.Status, verbs.RNRRetryExceeded)
	}
}

// A message longer than its receive ends the connection at both ends; so does memory that is not the program's.
func TestConnectionErrors(t *testing.T) {
	_, a, b := hosts(t, verbs.RC)
	connect(t, a, b)
	small, err := b.Register(4096)
	check(t, err)
	for i := range 4 {
		check(t, a.qp.Send(uint64(i), a.memory, 0, 16))
		a.completion(t, uint64(i), soon)
		b.completion(t, uint64(100+i), soon)
	}
	check(t, b.qp.Receive(200, small, 0, 8))
	check(t, a.qp.Send(9, a.memory, 0, 16))
	if c := b.completion(t, 200, soon); c.Status != verbs.LocalLength {
		t.Errorf("the receive ended with %d, want %d", c.Status, verbs.LocalLength)
	}
	const remoteInvalid = 9
	if c := a.completion(t, 9, soon); c.Status != remoteInvalid {
		t.Errorf("the send ended with %d, want %d", c.Status, remoteInvalid)
	}
}
