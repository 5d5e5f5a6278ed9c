package ibsimserver_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

const (
	saData       = 56 // of an SA attribute in a MAD
	attrInform   = 0x0003
	informIsAll  = 0xFFFF
	noticeNumber = saData + 4
	noticeGID    = saData + 16
)

// subscribe asks the SA at a LID for all notices. It asks again until the SA answers:
// OpenSM activates ports before it has a queue for its SA, and drops requests until its
// first sweep has ended.
func subscribe(t testing.TB, p *ibsim.Port, sa ib.LID) {
	t.Helper()
	ask := transport.Packet{LID: sa, QP: 1}
	ask.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodSet, Attr: attrInform, TID: 1})
	info := ask.MAD[saData:]
	for _, at := range []int{16, 24, 26} { // LIDRangeBegin, Type, TrapNumber
		binary.BigEndian.PutUint16(info[at:], informIsAll)
	}
	info[22], info[23] = 1, 1                          // IsGeneric, Subscribe
	info[30] = 1                                       // the reports are for queue pair 1
	binary.BigEndian.PutUint32(info[32:], 0x00FF_FFFF) // ProducerType
	answered, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if _, err := p.Send([]transport.Packet{ask}); err != nil {
				return // receive fails, too
			}
			select {
			case <-answered:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	defer func() { close(answered); <-stopped }()
	for {
		in := receive(t, p)
		if in.Undelivered {
			continue
		}
		if in.MAD.Method() != mad.MethodGetResp || in.MAD.Status() != mad.StatusOK {
			t.Fatalf("InformInfo: %v, %v", in.MAD.Method(), in.MAD.Status())
		}
		return
	}
}

// OpenSM learns by trap 128 that a host's link went down or up, and its Reports of
// traps 64 and 65 reach a host that asked for them.
func TestOpenSMReportsToSubscribers(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	f, _ := fabric(t)
	ours := simtest.Serve(t, f)
	manage(t, ours, f)
	p := dial(t, ours.Socket, "h1", true)
	defer time.AfterFunc(time.Minute, func() { p.Close() }).Stop()
	subscribe(t, p, f.PortInfo("sm", 1).LID)
	gid := ib.MakeGID(ib.DefaultPrefix, f.GUIDs("h3", 1)[0])
	for _, tt := range []struct {
		number mad.TrapNum
		cause  func() error
	}{
		{mad.TrapGIDOutOfService, func() error { return f.Unlink("h3", 1) }},
		{mad.TrapGIDInService, func() error { return f.Restore("h3", 1) }},
	} {
		if err := tt.cause(); err != nil {
			t.Fatal(err)
		}
		for told := false; !told; {
			in := receive(t, p)
			if in.MAD.Method() != mad.MethodReport {
				continue
			}
			told = mad.TrapNum(binary.BigEndian.Uint16(in.MAD[noticeNumber:])) == tt.number && [16]byte(in.MAD[noticeGID:noticeGID+16]) == [16]byte(gid)
			in.MAD.Respond(mad.StatusOK)
			send(t, p, in)
		}
	}
}

// manage lets OpenSM look after the fabric until the end of the test.
func manage(t testing.TB, c ibsimlab.Client, f *sim.Fabric) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd, err := c.Command(ctx, "sm", "opensm", "-e", "-s", "1", "-f", c.Dir+"/opensm.log")
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed by the test
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for up := false; !up; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("OpenSM does not bring the fabric up in a minute")
		}
		up = true
		for _, host := range []string{"sm", "h1", "h2", "h3"} {
			up = up && f.PortInfo(host, 1).PortState == ib.PortActive
		}
	}
}
