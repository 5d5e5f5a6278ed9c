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
	in := roundTrip(t, p, get(0xFFFFFFFF_00000007, mad.AttrNodeInfo))
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
			if q.Undelivered || q.MAD.Method() != mad.MethodGetResp {
				t.Errorf("%v: %v, undelivered %v", q.MAD.TID(), q.MAD.Method(), q.Undelivered)
			}
			seen[q.MAD.TID()]++
		}
		got += n
	}
	t.Logf("%d requests in %v, received by %d calls", count, time.Since(start), calls)
	for i := range out {
		if tid := ib.TID(i + 1); seen[tid] != 1 {
			t.Errorf("%v was answered %d times", tid, seen[tid])
		}
	}
}

// checkSilence asks where nobody can be: behind port 254 of whatever is at the
// other end of the cable. The request must come back.
func checkSilence(t *testing.T, p *Port) time.Duration {
	_, num := p.Device()
	start := time.Now()
	in := roundTrip(t, p, get(12, mad.AttrNodeInfo, num, 254))
	took := time.Since(start)
	if !in.Undelivered || in.MAD.Method() != mad.MethodGet || in.MAD.TID() != 12 {
		t.Errorf("%v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
	}
	return took
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
