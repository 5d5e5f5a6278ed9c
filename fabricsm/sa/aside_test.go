package sa_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/rmpp"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/transport"
)

// question is one that hosts ask, in all forms that need a record or none.
type question struct {
	method mad.Method
	attr   mad.AttrID
	mask   mad.ComponentMask
	fill   func([]byte)
}

func (r *rig) questions(from string) (all []question) {
	for attr := mad.AttrID(0x10); attr < 0x40; attr++ {
		all = append(all, question{mad.MethodGetTable, attr, 0, nil}, question{mad.MethodGet, attr, 1, nil})
	}
	all = append(all, question{mad.MethodGetTable, mad.AttrInformInfoRecord, 0, nil}, question{mad.MethodGet, mad.AttrClassPortInfo, 0, nil})
	own := ib.MakeGID(ib.DefaultPrefix, r.GUID(from, 1))
	for _, to := range []string{"h1", "h2", "h5"} {
		p := mad.PathRecord{SGID: own, DGID: ib.MakeGID(ib.DefaultPrefix, r.GUID(to, 1)), NumbPath: 1}
		fill := func(b []byte) { mad.MustEncode(b, &p) }
		const ends = mad.PathComponentSGID | mad.PathComponentDGID
		all = append(all, question{mad.MethodGet, mad.AttrPathRecord, ends, fill}, question{mad.MethodGetTable, mad.AttrPathRecord, ends | mad.PathComponentNumbPath, fill})
	}
	return all
}

// joined returns the header and the data of an answer, and nothing that depends on when it was asked.
func joined(t *testing.T, segments []mad.MAD) string {
	t.Helper()
	if len(segments) == 0 {
		return "silence"
	}
	data := segments[0].SAData()
	if segments[0].RMPPFlags().Has(mad.RMPPActive) {
		var err error
		if data, err = rmpp.Reassemble(segments); err != nil {
			t.Fatal(err)
		}
	}
	h := segments[0].Header()
	h.TID = 0
	return fmt.Sprintf("%+v %x %d\n%x", h, segments[0].ComponentMask(), segments[0].AttributeOffset(), data)
}

// What an Aside hears is what the host with that LID is answered over the fabric, bit for bit.
func TestAsideHearsWhatHostsHear(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sa.Config){
		"enhanced trust model": nil,
		"without it":           func(c *sa.Config) { c.Trust.Model = false },
		"believing":            func(c *sa.Config) { c.Policy = trusting{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *sa.Config) {
				c.Limiter.Administration.Node = limiter.Allowance{}
				if change != nil {
					change(c)
				}
			})
			r.t = t
			r.Grant(r.GrantOf("h1", 1, 0x8001), r.GrantOf("h5", 1, 0x8001), r.GrantOf("h2", 1, 0x8002))
			r.settle()
			mask, fill := join(ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}, r.GUID("h5", 1), 0x8001)
			r.one("h5", ib.SAKey{}, mad.MethodSet, mad.AttrMCMemberRecord, mask, fill)
			aside, err := r.Administration().Aside()
			if err != nil {
				t.Fatal(err)
			}
			answered := 0
			for _, host := range []string{"h1", "h2"} {
				for _, q := range r.questions(host) {
					want := joined(t, r.ask(host, ib.SAKey{}, q.method, q.attr, q.mask, q.fill))
					heard, err := aside.Ask(r.now(), r.request(host, q.method, q.attr, q.mask, q.fill))
					if err != nil || heard.Cut {
						t.Fatalf("%v of %v: cut %t, %v", q.method, q.attr, heard.Cut, err)
					}
					if got := joined(t, heard.Segments); got != want {
						t.Errorf("%s, %v of %v: heard %.300s, the host is answered %.300s", host, q.method, q.attr, got, want)
					}
					if want != "silence" {
						answered++
					}
				}
			}
			if answered < 8 {
				t.Errorf("only %d answers were compared", answered)
			}
		})
	}
}

// trusting answers requests that untrusted hosts may not make, as if the SA_Key was shown.
type trusting struct{ sa.Strict }

func (trusting) Accepts(v trust.Verdict) bool { return v == trust.OK || v == trust.NotAllowed }

// A question of an Aside counts for nothing: no violation, no share of a limit, no report, no event, no registration.
func TestAsideLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *sa.Config) {
		c.Limiter.Administration.Node = limiter.Allowance{Rate: 1, Burst: 3}
		c.Trust.Threshold = 2
	})
	r.Grant(r.GrantOf("h1", 1, 0x8001))
	r.settle()
	a := r.Administration()
	// A subscriber that showed the key is sent what a spoofed source GID of a host causes.
	all := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers, QPN: 1}
	if m := r.one("h5", saKey, mad.MethodSet, mad.AttrInformInfo, 0, func(b []byte) { mad.MustEncode(b, &all) }); m.Status() != mad.StatusOK {
		t.Fatalf("the subscription: %v", m.Status())
	}
	aside, err := a.Aside()
	if err != nil {
		t.Fatal(err)
	}
	before := a.Status()
	next := a.Next()
	events := len(r.Since(0))
	for range 3 { // many more than a host may ask
		for _, q := range r.questions("h1") {
			p := r.request("h1", q.method, q.attr, q.mask, q.fill)
			p.GRH = transport.GRH{Present: true, GID: ib.MakeGID(ib.DefaultPrefix, r.GUID("h2", 1))} // spoofed: subscribers would be notified
			if _, err := aside.Ask(r.now(), p); err != nil {
				t.Fatal(err)
			}
			if _, err := aside.Ask(r.now(), r.request("h1", q.method, q.attr, q.mask, q.fill)); err != nil {
				t.Fatal(err)
			}
		}
	}
	own := mad.PathRecord{SGID: ib.MakeGID(ib.DefaultPrefix, r.GUID("h1", 1)), DGID: ib.MakeGID(ib.DefaultPrefix, r.GUID("h1", 1))}
	heard, err := aside.Ask(r.now(), r.request("h1", mad.MethodGet, mad.AttrPathRecord, mad.PathComponentSGID|mad.PathComponentDGID, func(b []byte) { mad.MustEncode(b, &own) }))
	if err != nil || len(heard.Segments) != 1 || heard.Segments[0].Status() != mad.StatusOK {
		t.Errorf("after many questions the port is not answered: %+v, %v", heard, err)
	}
	after := a.Status()
	before.Registered, after.Registered = sa.Registered{}, sa.Registered{}
	if !reflect.DeepEqual(before, after) || len(r.Since(0)) != events || !a.Next().Equal(next) {
		t.Errorf("status before:\n%+v\nafter:\n%+v; %d events, next %v and %v", before, after, len(r.Since(0))-events, next, a.Next())
	}
	// The host itself still has all of its share.
	for i := range 2 {
		if got := r.ask("h1", ib.SAKey{}, mad.MethodGet, mad.AttrClassPortInfo, 0, nil); len(got) != 1 {
			t.Errorf("request %d of the host has %d answers", i, len(got))
		}
	}
}

// Only questions are taken.
func TestAsideTakesQuestionsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	aside, err := r.Administration().Aside()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []mad.Method{mad.MethodSet, mad.MethodDelete, mad.MethodReport, mad.MethodTrap, mad.MethodGetResp, mad.MethodReportResp, 0x77} {
		if heard, err := aside.Ask(r.now(), r.request("h1", m, mad.AttrServiceRecord, 0, nil)); err == nil || len(heard.Segments) > 0 {
			t.Errorf("%v: %+v, %v", m, heard, err)
		}
	}
	p := r.request("h1", mad.MethodGet, mad.AttrServiceRecord, 0, nil)
	p.MAD.SetRMPPFlags(mad.RMPPActive)
	if _, err := aside.Ask(r.now(), p); err == nil {
		t.Error("a segment was taken")
	}
	other := r.request("h1", mad.MethodGet, mad.AttrNodeInfo, 0, nil)
	other.MAD.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGet, Attr: mad.AttrClassPortInfo})
	if _, err := aside.Ask(r.now(), other); err == nil {
		t.Error("a MAD of another class was taken")
	}
	nobody := r.request("h1", mad.MethodGet, mad.AttrClassPortInfo, 0, nil)
	nobody.LID = 0xBFF0
	if heard, err := aside.Ask(r.now(), nobody); err != nil || len(heard.Segments) > 0 {
		t.Errorf("a LID that no port has: %+v, %v", heard, err)
	}
}

// An answer of many segments is heard whole, and a changed limit or registry counts for the next question.
func TestAsideFollows(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	aside, err := c.agent.Aside()
	if err != nil {
		t.Fatal(err)
	}
	table := func() (n int) {
		t.Helper()
		c.tid++
		p := transport.Packet{LID: c.stage.Fabric.PortInfo("h1", 1).LID, QP: 1}
		p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGetTable, TID: c.tid, Attr: mad.AttrServiceRecord})
		p.MAD.SetSAKey(saKey)
		heard, err := aside.Ask(c.now, &p)
		if err != nil || heard.Cut || len(heard.Segments) == 0 {
			t.Fatalf("cut %t, %d segments, %v", heard.Cut, len(heard.Segments), err)
		}
		data, err := rmpp.Reassemble(heard.Segments)
		if err != nil {
			t.Fatal(err)
		}
		size := mad.RecordSize(mad.AttrServiceRecord)
		if bytes.Contains(data, make([]byte, size)) && len(data) > 0 {
			t.Error("an empty record")
		}
		return len(data) / size
	}
	if n := table(); n != 0 {
		t.Errorf("%d services before any", n)
	}
	c.services(700)
	if n := table(); n != 700 {
		t.Errorf("%d services, want 700", n)
	}
	s := sa.DefaultConfig()
	settings := s.Settings()
	settings.Limiter.Administration.Node = limiter.Allowance{Rate: 1, Burst: 1}
	if err := c.agent.Configure(c.now, &settings, &c.out); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n := table(); n != 700 {
			t.Errorf("%d services with other limits, want 700", n)
		}
	}
	if err := c.agent.Restore(c.now, nil, &c.out); err != nil {
		t.Fatal(err)
	}
	if n := table(); n != 0 {
		t.Errorf("%d services after they were replaced by none", n)
	}
}
