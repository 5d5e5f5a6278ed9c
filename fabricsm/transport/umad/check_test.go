package umad

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// These checks need a port that is attached to something, which may be a real
// HCA: see hardware_test.go.

// checkOwnNode asks the node that the port is on for its identity.
func checkOwnNode(t *testing.T, p *Port) {
	in := ownTrip(t, p, get(0xFFFFFFFF_00000007, mad.AttrNodeInfo))
	var ni mad.NodeInfo
	if err := mad.Decode(in.MAD.Data(), &ni); err != nil {
		t.Fatal(err)
	}
	if in.Undelivered || in.MAD.Method() != mad.MethodGetResp || in.MAD.TID() != 7 {
		t.Fatalf("answer %v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
	}
	if _, num := p.Device(); ni.PortGUID != p.GUID() || ni.LocalPortNum != num {
		t.Errorf("NodeInfo says port %d, GUID %v; sysfs says port %d, GUID %v", ni.LocalPortNum, ni.PortGUID, num, p.GUID())
	}
	t.Logf("node %v, %v, %d ports", ni.NodeGUID, ni.NodeType, ni.NumPorts)
}

// checkBurst has many requests under way at once, all to our own node, and
// wants each answered once.
func checkBurst(t *testing.T, p *Port) {
	const count = 256
	out := make([]transport.Packet, count)
	for i := range out {
		out[i] = get(ib.TID(i+1), mad.AttrNodeInfo)
	}
	start := time.Now()
	if n, err := p.Send(out); n != count || err != nil {
		t.Fatalf("send: %d, %v", n, err)
	}
	seen := map[ib.TID]int{}
	in := make([]transport.Packet, count)
	calls := 0
	for got := 0; got < count; calls++ {
		n, err := p.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range in[:n] {
			if fromOthers(&q) {
				continue
			}
			got++
			if q.Undelivered || q.MAD.Method() != mad.MethodGetResp {
				t.Errorf("%v: %v, undelivered %v", q.MAD.TID(), q.MAD.Method(), q.Undelivered)
			}
			seen[q.MAD.TID()]++
		}
	}
	t.Logf("%d requests in %v, received by %d calls", count, time.Since(start), calls)
	for i := range out {
		if tid := ib.TID(i + 1); seen[tid] != 1 {
			t.Errorf("%v was answered %d times", tid, seen[tid])
		}
	}
}

// fromOthers reports whether a packet is no answer to a request of ours: devices send traps to the Subnet Manager that they
// know, which may have been at this port before.
func fromOthers(p *transport.Packet) bool { return !p.MAD.IsResponse() && !p.Undelivered }

// checkSilence sends a request to an impossible place: behind port 254 of the device at the other end of the cable. The
// request must come back.
func checkSilence(t *testing.T, p *Port) time.Duration {
	_, num := p.Device()
	start := time.Now()
	in := ownTrip(t, p, get(12, mad.AttrNodeInfo, num, 254))
	took := time.Since(start)
	if !in.Undelivered || in.MAD.Method() != mad.MethodGet || in.MAD.TID() != 12 {
		t.Errorf("%v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
	}
	return took
}

// checkLane opens the lane of subnet administration and, if the port has a LID, sends
// it a question from our own side: as the lane's request, which comes back answered or
// undelivered, and never to the port.
func checkLane(t *testing.T, p *Port) {
	l, err := p.SA()
	if err != nil {
		t.Fatal(err)
	}
	_, num := p.Device()
	ask := get(14, mad.AttrPortInfo)
	ask.MAD.SetMod(uint32(num))
	in := ownTrip(t, p, ask)
	var pi mad.PortInfo
	if err := mad.Decode(in.MAD.Data(), &pi); err != nil {
		t.Fatal(err)
	}
	if pi.LID == 0 {
		t.Log("the port has no LID: nothing was asked")
		return
	}
	question := transport.Packet{LID: pi.LID, QP: 1}
	question.MAD.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrClassPortInfo, TID: 15,
	})
	if n, err := l.TrySend([]transport.Packet{question}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	buf := make([]transport.Packet, 1)
	for {
		n, err := l.TryReceive(buf)
		if err == nil && n == 0 {
			err = l.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		got := &buf[0]
		switch {
		case n == 0:
		case !got.MAD.IsResponse() && !got.Undelivered: // it came to us: answer
			t.Logf("received from %v, service level %d, P_Key index %d, GRH %+v", got.LID, got.SL, got.PKeyIndex, got.GRH)
			got.MAD.Respond(mad.StatusOK)
			if n, err := l.TrySend(buf); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		case uint32(got.MAD.TID()) == 15:
			t.Logf("%v, undelivered %v", got.MAD.Method(), got.Undelivered)
			return
		}
	}
}

// ownTrip is roundTrip on a port to which others may send.
func ownTrip(t *testing.T, p *Port, out transport.Packet) transport.Packet {
	t.Helper()
	in := roundTrip(t, p, out)
	for fromOthers(&in) {
		in = receive(t, p)
	}
	return in
}

// checkIsSM sets the bit and asks our own port for it.
func checkIsSM(t *testing.T, p *Port) {
	if isSM(t, p) {
		t.Error("IsSM before SetIsSM")
	}
	if err := p.SetIsSM(true); err != nil {
		t.Fatal(err)
	}
	if !isSM(t, p) {
		t.Error("no IsSM after SetIsSM")
	}
}

// isSM reads the bit from PortInfo. Traps and requests of others that come
// between are left aside.
func isSM(t *testing.T, p *Port) bool {
	t.Helper()
	_, num := p.Device()
	ask := get(13, mad.AttrPortInfo)
	ask.MAD.SetMod(uint32(num))
	if n, err := p.Send([]transport.Packet{ask}); n != 1 || err != nil {
		t.Fatalf("send: %d, %v", n, err)
	}
	for {
		in := receive(t, p)
		if in.MAD.TID() != 13 || in.MAD.Attr() != mad.AttrPortInfo {
			continue
		}
		var pi mad.PortInfo
		if err := mad.Decode(in.MAD.Data(), &pi); err != nil || in.Undelivered {
			t.Fatalf("PortInfo of our own port: %v, undelivered %v", err, in.Undelivered)
		}
		return pi.CapabilityMask&mad.IsSM != 0
	}
}
