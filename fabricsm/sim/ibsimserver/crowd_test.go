package ibsimserver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// A hundred clients send requests at once, each to the node of another client, and get their own answers in order.
func TestHundredClients(t *testing.T) {
	const clients, rounds = 100, 20
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	ports := make([]*ibsim.Port, clients)
	for i := range ports {
		ports[i] = dial(t, c.Socket, []string{"sm", "h1"}[i%2], false)
	}
	var all sync.WaitGroup
	for i, p := range ports {
		all.Go(func() {
			for round := range rounds {
				tid := ib.TID(i*rounds + round)
				out, in := []transport.Packet{get(tid, mad.AttrNodeInfo, 1, ib.PortNum(2-i%2))}, make([]transport.Packet, 1)
				if _, err := p.Send(out); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				if _, err := p.Receive(in); err != nil || in[0].Undelivered || uint32(in[0].MAD.TID()) != uint32(tid) {
					t.Errorf("client %d, request %d: answer %v, undelivered %v, %v", i, tid, in[0].MAD.TID(), in[0].Undelivered, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A client sends requests and never reads, until both its queue and ours are full, and then dies. Other clients see no
// effect.
func TestClientThatNeverReads(t *testing.T) {
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	honest := dial(t, c.Socket, "sm", false)
	control, data, slot := connectByHand(t, c.Socket, "h1", false)
	frame := make([]byte, 32+mad.Size)
	binary.BigEndian.PutUint16(frame, uint16(ib.PermissiveLID))
	ask := get(1, mad.AttrNodeInfo)
	copy(frame[32:], ask.MAD[:])
	to := &net.UnixAddr{Name: fmt.Sprintf("@%s:out%d\x00", c.Socket, slot), Net: "unixgram"}
	if err := data.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	var err error
	for sent := 0; err == nil && sent < 10_000; sent++ {
		_, err = data.WriteToUnix(frame, to)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the deaf client is stopped by %v, want a full queue", err)
	}
	send(t, honest, get(2, mad.AttrNodeInfo, 1, 2))
	if in := receive(t, honest); in.Undelivered {
		t.Error("the honest client is cut off")
	}
	if err := errors.Join(control.Close(), data.Close()); err != nil {
		t.Fatal(err)
	}
	// Its place is free for the next one.
	if p := dial(t, c.Socket, "h1", false); p.Slot() != int(slot) {
		t.Errorf("the next client has slot %d, want %d, that of the dead one", p.Slot(), slot)
	}
}
