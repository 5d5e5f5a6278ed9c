package pcap

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/packaging/testenv"
)

// asker is a host that asks subnet administration.
type asker struct {
	*sim.Station
	lid ib.LID // of subnet administration
	tid ib.TID
}

// ask sends a request, acknowledges the answer, and returns its last segment.
func (a *asker) ask(t *testing.T, method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte)) transport.Packet {
	t.Helper()
	a.tid++
	p := transport.Packet{LID: a.lid, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, TID: a.tid, Attr: attr})
	p.MAD.SetSAKey(ib.NewSAKey(mark))
	p.MAD.SetComponentMask(mask)
	if fill != nil {
		fill(p.MAD.SAData())
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(time.Minute)
	for turn := 0; time.Now().Before(end); turn++ {
		if turn%500 == 0 {
			a.Send(p) // again: earlier packets are dropped until it is ready
		}
		for _, in := range a.Take(nil) {
			m := &in.MAD
			if in.Undelivered || uint32(m.TID()) != uint32(a.tid) {
				continue
			}
			if !m.RMPPFlags().Has(mad.RMPPActive) {
				return in
			}
			ack := in
			ack.MAD.SetMethod(method)
			ack.MAD.SetRMPPType(mad.RMPPAck)
			ack.MAD.SetRMPPFlags(mad.RMPPActive)
			ack.MAD.SetNewWindowLast(m.SegmentNumber() + 8)
			a.Send(ack)
			if m.RMPPFlags().Has(mad.RMPPLast) {
				return in
			}
		}
		<-tick.C
	}
	t.Fatalf("%v of %v: no answer within a minute", method, attr)
	return transport.Packet{}
}

// each returns every different line once, in order.
func each(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}

// A capture of a whole run, of a subnet manager that brings a fabric up and subnet
// administration beside it, dissects without a fault, and has no key in it.
func TestRunDissected(t *testing.T) {
	testenv.Program(t, "tshark")
	list, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	f := sim.New(list)
	under, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: simtest.Serve(t, f).Socket, Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.pcap")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := NewWriter(out, 1<<26, func(err error) { t.Error(err) })
	cfg := sa.DefaultConfig()
	cfg.Key = ib.NewSAKey(mark)
	agent, err := sa.New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	var run sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer run.Wait()
	defer cancel()
	settled := make(chan ib.LID, 1)
	run.Go(func() {
		err := driver.Run(ctx, driver.Options{
			Port: Capture(under, w), Core: sm.Config{Enforcement: sm.Accepted}, SA: agent,
			OnView: func(v *sm.View) {
				w.SetEnd(End{LID: v.LID, GIDs: ours.GIDs})
				if v.Settled {
					select {
					case settled <- v.LID:
					default:
					}
				}
			},
		}, nil)
		if err != nil {
			t.Error(err)
		}
	})
	station, err := f.Station("h1", false)
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{Station: station, lid: <-settled, tid: 100}
	port, manager := ib.MakeGID(ib.DefaultPrefix, list.Find("h1").PortGUID(1)), ib.MakeGID(ib.DefaultPrefix, list.Find("sm").PortGUID(1))
	for { // it answers when it has seen the view
		p := a.ask(t, mad.MethodGet, mad.AttrPathRecord, mad.PathComponentSGID|mad.PathComponentDGID, func(b []byte) {
			_ = mad.Encode(b, &mad.PathRecord{SGID: port, DGID: manager})
		})
		if p.MAD.Status() == mad.StatusOK {
			break
		}
	}
	group := mad.MCMemberRecord{MGID: ib.GID{0xFF, 0x12, 0xA0, 0x1B, 15: 7}, PortGID: port, JoinState: ib.FullMember, PKey: ib.DefaultPKeyFull, QKey: 0x1234}
	a.ask(t, mad.MethodSet, mad.AttrMCMemberRecord, mad.MCMemberCreate, func(b []byte) { _ = mad.Encode(b, &group) })
	last := a.ask(t, mad.MethodGetTable, mad.AttrNodeRecord, 0, nil)
	segments := last.MAD.SegmentNumber()
	a.ask(t, mad.MethodGetTable, mad.AttrPortInfoRecord, 0, nil)
	cancel()
	run.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	if got := fields(t, file, faults, "frame.number", "_ws.expert.message"); len(got) != 0 {
		t.Errorf("tshark finds faults with packets %v", got)
	}
	if b, err := os.ReadFile(file); err != nil || bytes.Contains(b, []byte{0x5E, 0xC2, 0xE7, 0x5E}) {
		t.Errorf("there is a key in the capture, %v", err)
	}
	sent := "infiniband.lrh.slid == " + a.lid.String() + " and infiniband.mad.mgmtclass == 3"
	if got := fields(t, file, sent+" and infiniband.mad.attributeid == 0x0011", "infiniband.rmpp.segmentnumber"); len(got) < int(segments) || segments < 5 {
		t.Errorf("%d segments were sent and %d captured", segments, len(got))
	}
	if d := cmp.Diff(each(fields(t, file, sent+" and infiniband.mad.attributeid == 0x0035 and infiniband.mad.status == 0", "infiniband.pathrecord.sgid", "infiniband.pathrecord.dgid", "infiniband.mad.method")),
		[]string{port.String() + " " + manager.String() + " 0x81"}); d != "" {
		t.Errorf("paths: -got +want:\n%s", d)
	}
	if got := each(fields(t, file, "infiniband.mad.mgmtclass == 3 and infiniband.mad.attributeid == 0x0038", "infiniband.mad.method", "infiniband.mcmemberrecord.q_key")); len(got) != 2 || got[0] != "0x02 0x00001234" || got[1] != "0x81 0x00001234" {
		t.Errorf("members: %v", got)
	}
}
