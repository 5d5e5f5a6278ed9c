package inquiring

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
	"portcullis/fabricsm/transport"
)

// port answers each Get but those of silent attributes, and is lost when a test says so.
type port struct {
	mu      sync.Mutex
	arrived chan transport.Packet
	closed  chan struct{}
	once    sync.Once
	silent  mad.AttrID
	sent    int
	lost    bool
}

func newPort() *port {
	return &port{arrived: make(chan transport.Packet, 1000), closed: make(chan struct{}), silent: mad.AttrLedInfo}
}

func (p *port) Send(packets []transport.Packet) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return 0, transport.ErrLost
	}
	for i := range packets {
		p.sent++
		m := packets[i].MAD
		if m.Attr() == p.silent {
			continue
		}
		m.SetMethod(mad.MethodGetResp)
		m.SetReturning(true)
		p.arrived <- transport.Packet{MAD: m}
	}
	return len(packets), nil
}

func (p *port) Receive(in []transport.Packet) (int, error) {
	select {
	case in[0] = <-p.arrived:
		return 1, nil
	case <-p.closed:
		return 0, transport.ErrClosed
	}
}

func (p *port) SetIsSM(bool) error { return errors.New("it is no Subnet Manager") }
func (p *port) GUID() ib.GUID      { return topotest.HostGUID(0) + 1 }
func (p *port) Close() error       { p.once.Do(func() { close(p.closed) }); return nil }

// site is a Service beside a Subnet Manager that is master.
type site struct {
	*Service
	store *store.Store
	port  *port
	view  *sm.View
	err   error // of the view
}

func newSite(t *testing.T) *site {
	t.Helper()
	var k topotest.Kit
	leaf := k.Switch(1, 1, 4)
	k.LinkPorts(k.Host(1), 1, leaf, 1)
	k.LinkPorts(k.Host(1), 1, leaf, 2)
	s := &site{store: store.New(memory.New(time.Now), ""), port: newPort(), view: view(k.Fabric())}
	s.Service = New(Options{
		Store: s.store, Log: slog.New(slog.DiscardHandler), Now: time.Now, Timeout: 100 * time.Millisecond,
		Open: func(context.Context) (transport.Port, error) { s.port = newPort(); return s.port, nil },
		View: func() (*sm.View, error) { return s.view, s.err },
	})
	return s
}

func view(f *topo.Fabric) *sm.View { return &sm.View{Fabric: f, State: ib.SMMaster} }

func (s *site) begin(t *testing.T, seconds int) string {
	t.Helper()
	in, err := s.Begin(t.Context(), "olga", v1.NewInquiry{Reason: "why", Tool: "smpquery", Seconds: seconds})
	if err != nil {
		t.Fatal(err)
	}
	return in.ID
}

// get returns a request of a tool for the own port.
func get(attr mad.AttrID) v1.InquiryMAD {
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, TID: 0x123456789, Attr: attr}, &mad.Route{}, ib.MKey{})
	return v1.InquiryMAD{MAD: m[:]}
}

// log returns what the audit log has, an entry a line.
func (s *site) log(t *testing.T) string {
	t.Helper()
	snap, err := s.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := audit.Entries().List(t.Context(), snap, "")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i := range all {
		e := &all[i].Value
		out.WriteString(e.Actor + " " + e.Action + " " + e.Detail + "\n")
	}
	return out.String()
}

func refused(err error, code string) bool {
	r, ok := errors.AsType[*refusal.Error](err)
	return ok && r.Code == code
}

// TestAsk: what is answered comes in order, what is silent is asked twice, and what is refused is not sent.
func TestAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		id := s.begin(t, 60)
		set := get(mad.AttrPortInfo)
		set.MAD[3] = byte(mad.MethodSet)
		got, err := s.Ask(t.Context(), "olga", id, v1.InquiryMADs{MADs: []v1.InquiryMAD{get(mad.AttrNodeInfo), get(mad.AttrLedInfo), set, get(mad.AttrPortInfo)}})
		if err != nil {
			t.Fatal(err)
		}
		a := got.Answers
		if len(a) != 4 || len(a[0].MAD) != mad.Size || a[1].MAD != nil || a[1].Refused != "" || a[2].MAD != nil || !strings.Contains(a[2].Refused, "may only read") || len(a[3].MAD) != mad.Size {
			t.Fatalf("answers: %+v", a)
		}
		if m := mad.MAD(a[3].MAD); m.Attr() != mad.AttrPortInfo || m.TID() != 0x123456789 {
			t.Errorf("the answer is of %v, TID %v", m.Attr(), m.TID())
		}
		if s.port.sent != 4 {
			t.Errorf("%d packets were sent, want 3 and one again", s.port.sent)
		}
		if err := s.End(t.Context(), "olga", id); err != nil {
			t.Fatal(err)
		}
		if log := s.log(t); !strings.Contains(log, "olga fabric.inquiry.begin smpquery, until ") || !strings.Contains(log, "olga fabric.inquiry.end smpquery: 3 requests: LedInfo 1, NodeInfo 1, PortInfo 1; 1 refused") {
			t.Errorf("the audit log:\n%s", log)
		}
	})
}

// TestEnds: an inquiry ends by itself, and then nothing is asked.
func TestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		id, other := s.begin(t, 60), s.begin(t, 3600)
		for _, who := range []struct{ actor, id string }{{"mallory", id}, {"", id}, {"olga", "00"}} {
			if _, err := s.Ask(t.Context(), who.actor, who.id, v1.InquiryMADs{MADs: []v1.InquiryMAD{get(mad.AttrNodeInfo)}}); !refused(err, "inquiry_unknown") {
				t.Errorf("%q asks %q: %v", who.actor, who.id, err)
			}
			if err := s.End(t.Context(), who.actor, who.id); !refused(err, "inquiry_unknown") {
				t.Errorf("%q ends %q: %v", who.actor, who.id, err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := s.Ask(t.Context(), "olga", id, v1.InquiryMADs{MADs: []v1.InquiryMAD{get(mad.AttrNodeInfo)}}); !refused(err, "inquiry_unknown") {
			t.Errorf("an inquiry whose time is over: %v", err)
		}
		if log := s.log(t); strings.Count(log, "fabric.inquiry.end smpquery: 0 requests") != 1 {
			t.Errorf("the audit log:\n%s", log)
		}
		s.Close()
		if err := s.End(t.Context(), "olga", other); !refused(err, "inquiry_unknown") {
			t.Errorf("an inquiry of before the end: %v", err)
		}
		if log := s.log(t); strings.Count(log, "fabric.inquiry.end") != 2 {
			t.Errorf("the audit log:\n%s", log)
		}
	})
}

// TestRefuses: without a master, a port or a record nothing begins, and nothing is counted.
func TestRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		id := s.begin(t, 60)
		ask := v1.InquiryMADs{MADs: []v1.InquiryMAD{get(mad.AttrNodeInfo)}}
		for name, q := range map[string]v1.InquiryMADs{
			"none": {}, "many": {MADs: make([]v1.InquiryMAD, v1.MaxInquiryMADs+1)}, "short": {MADs: []v1.InquiryMAD{{MAD: make([]byte, 255)}}},
		} {
			if _, err := s.Ask(t.Context(), "olga", id, q); !refused(err, "inquiry_mads") {
				t.Errorf("%s: %v", name, err)
			}
		}
		s.port.mu.Lock()
		s.port.lost = true
		s.port.mu.Unlock()
		if _, err := s.Ask(t.Context(), "olga", id, ask); !refused(err, "fabric_unread") || !errors.Is(err, transport.ErrLost) {
			t.Errorf("a port that is lost: %v", err)
		}
		s.view = &sm.View{Fabric: s.view.Fabric, State: ib.SMStandby}
		if _, err := s.Ask(t.Context(), "olga", id, ask); !refused(err, v1.CodeUnavailable) {
			t.Errorf("beside another master: %v", err)
		}
		s.err = errors.New("another instance leads")
		if _, err := s.Begin(t.Context(), "olga", v1.NewInquiry{Reason: "why", Tool: "x", Seconds: 60}); !refused(err, v1.CodeUnavailable) {
			t.Errorf("elsewhere: %v", err)
		}
		s.view, s.err = view(s.view.Fabric), nil
		opens := s.o.Open
		s.o.Open = func(context.Context) (transport.Port, error) { return nil, transport.ErrLost }
		for range 2 * maxOwn {
			if _, err := s.Begin(t.Context(), "olga", v1.NewInquiry{Reason: "why", Tool: "x", Seconds: 60}); !refused(err, "fabric_unread") {
				t.Errorf("without a port: %v", err)
			}
		}
		s.o.Open = opens
		for _, seconds := range []int{0, -1, v1.MaxInquirySeconds + 1} {
			if _, err := s.Begin(t.Context(), "olga", v1.NewInquiry{Reason: "why", Tool: "x", Seconds: seconds}); !refused(err, "inquiry_time") {
				t.Errorf("for %d s: %v", seconds, err)
			}
		}
		for range maxOwn - 1 {
			s.begin(t, 60)
		}
		if _, err := s.Begin(t.Context(), "olga", v1.NewInquiry{Reason: "why", Tool: "x", Seconds: 60}); !refused(err, "inquiries_many") {
			t.Errorf("one more: %v", err)
		}
		s.Close()
	})
}
