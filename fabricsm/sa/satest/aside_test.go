package satest_test

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// answering runs a Subnet Manager in this process, at host "sm" of a lab, with h1 and h7 in one partition and h2 and h4 in another one. It
// returns what has its subnet administration answer questions that come by no port.
func answering(t *testing.T, lab *ibsimlab.Lab, l *netlist.Netlist, cfg sa.Config) *driver.Asker {
	t.Helper()
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := sa.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	in := sm.Intent{Revision: 1}
	for host, key := range map[string]ib.PKey{"h1": 0x8001, "h7": 0x8001, "h2": 0x8002, "h4": 0x8002} {
		n := l.Find(host)
		p := n.Ports[1]
		in.Grants = append(in.Grants, sm.Grant{GUID: n.PortGUID(1), PKey: key, Place: ib.Place{Switch: l.Find(p.Peer).GUID, Port: p.PeerPort}})
	}
	intents, settled, ended := make(chan sm.Intent, 1), make(chan struct{}), make(chan error, 1)
	intents <- in
	asker := &driver.Asker{}
	if _, err := asker.Ask(t.Context(), nil); err == nil {
		t.Error("before anything runs, questions are answered")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	up := false
	go func() {
		ended <- driver.Run(ctx, driver.Options{
			Port: port, Core: sm.Config{Enforcement: sm.Accepted, IntentWait: time.Minute}, SA: agent, Asker: asker,
			OnView: func(v *sm.View) {
				if v.Settled && v.Intent && !up {
					up = true
					close(settled)
				}
			},
		}, intents)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the Subnet Manager ended: %v", err)
		}
		if _, err := asker.Ask(context.Background(), make([]transport.Packet, 1)); err == nil {
			t.Error("after the end, questions are answered")
		}
	})
	select {
	case <-settled:
	case <-time.After(5 * time.Minute):
		t.Fatal("the fabric was not settled in five minutes")
	}
	return asker
}

// heardAside returns the answer to a question without a port, in the form of a client's.
func heardAside(t *testing.T, asker *driver.Asker, from ib.LID, q *satest.Question, tid ib.TID) (a satest.Answer) {
	t.Helper()
	p := transport.Packet{LID: from, QP: 1}
	q.Fill(&p.MAD, tid)
	heard, err := asker.Ask(t.Context(), []transport.Packet{p})
	if err != nil {
		t.Fatal(err)
	}
	if len(heard[0].Segments) == 0 {
		return a
	}
	m := &heard[0].Segments[0]
	a = satest.Answer{
		Method: m.Method(), Attr: m.Attr(), Mod: m.Mod(), Status: m.Status(), Mask: m.ComponentMask(), Key: m.SAKeyBits(), Offset: m.AttributeOffset(),
		Data: append([]byte(nil), m.SAData()...),
	}
	if m.RMPPFlags().Has(mad.RMPPActive) {
		if a.Data, err = rmpp.Reassemble(heard[0].Segments); err != nil {
			t.Fatal(err)
		}
		a.Segments = len(heard[0].Segments)
	}
	return a
}

// TestAsideAgreesWithHosts asks from ports of hosts on a real ibsim, by a client of its own and by saquery, and asks the same without a port:
// the answers are the same bytes, and the same records.
func TestAsideAgreesWithHosts(t *testing.T) {
	ibsimtest.Need(t, "saquery")
	l := small(t)
	pre := preload(t)
	for name, model := range map[string]bool{"enhanced trust model": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			lab := ibsimtest.Start(t, text(t, l))
			cfg := sa.DefaultConfig()
			cfg.Key, cfg.Trust.Model = trusted, model
			asker := answering(t, lab, l, cfg)
			(&site{lab: lab}).named(t)
			p := look(t, dial(t, lab, "sm"), l, trusted)
			var asks []ask
			for _, host := range []string{"h1", "h2", "h3"} {
				for _, more := range [][]ask{wholeTables(host, ib.SAKey{}), p.paths(host, ib.SAKey{}), p.portInfos(host, ib.SAKey{})} {
					asks = append(asks, more...)
				}
			}
			answered := 0
			for i, want := range interview(t, lab, asks) {
				got := heardAside(t, asker, p.lid(asks[i].host), &asks[i].q, ib.TID(1000+i))
				if want.Data, got.Data = want.Data[:len(want.Data):len(want.Data)], got.Data[:len(got.Data):len(got.Data)]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s from %s: heard aside\n%+v\nthe host is answered\n%+v", asks[i].name, asks[i].host, got, want)
				}
				if !want.Silent() {
					answered++
				}
			}
			if answered < 100 {
				t.Errorf("only %d of %d questions were answered", answered, len(asks))
			}
			for _, host := range []string{"h1", "h2"} {
				saqueryAgrees(t, lab, pre, asker, p, host, model)
			}
		})
	}
}

var printedGUID = regexp.MustCompile(`(?m)port_guid\.+(0x[0-9a-f]+)`)

// saqueryAgrees compares the ports of the NodeRecords that saquery prints with those that are heard aside.
func saqueryAgrees(t *testing.T, lab *ibsimlab.Lab, pre satest.Preload, asker *driver.Asker, p *place, host string, model bool) {
	t.Helper()
	said := hear(t, lab, pre, &call{host, []string{"-t", saqueryTimeout, "NR"}})
	var printed, heard []string
	for _, r := range said.records {
		for _, m := range printedGUID.FindAllStringSubmatch(r, -1) {
			printed = append(printed, m[1])
		}
	}
	a := heardAside(t, asker, p.lid(host), &satest.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord}, 7)
	for _, r := range a.Records() {
		var rec mad.NodeRecord
		if err := mad.Decode(r, &rec); err != nil {
			t.Fatal(err)
		}
		heard = append(heard, rec.PortGUID.String())
	}
	slices.Sort(printed)
	slices.Sort(heard)
	if !slices.Equal(printed, heard) || model != (len(heard) == 0) {
		t.Errorf("saquery from %s prints %v (%s), aside is heard %v", host, printed, said.failed, heard)
	}
}
