package sm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

var (
	rightKey = ib.NewSMKey(0x5ec4e7)
	wrongKey = ib.NewSMKey(0x5ec4e6)
)

// routeBetween returns the directed route from one host to another on a fabric of one switch.
func routeBetween(l *netlist.Netlist, to string) mad.Route {
	return mad.MakeRoute(1, l.Find(to).Ports[1].PeerPort)
}

// said is what came back for a request: nothing, or a status and SMInfo.
type said struct {
	answered bool
	status   mad.Status
	info     mad.SMInfo
}

// talk sends SMInfo from a station to the SM under test and waits for the
// answer.
func (e *env) talk(st *sim.Station, method mad.Method, control mad.SMInfoControl, si mad.SMInfo, lid ib.LID) said {
	e.t.Helper()
	var p transport.Packet
	p.LID = ib.PermissiveLID
	route := routeBetween(e.list, "sm")
	way := &route
	if lid != 0 {
		p.LID, way = lid, nil
	}
	mad.NewSMP(&p.MAD, mad.Header{Method: method, TID: 0x77, Attr: mad.AttrSMInfo, Mod: uint32(control)}, way, ib.MKey{})
	if err := mad.Encode(p.MAD.Data(), &si); err != nil {
		e.t.Fatal(err)
	}
	answers := st.Exchange([]transport.Packet{p}, nil)
	for range 3 {
		e.run(100 * time.Microsecond)
	}
	for _, a := range append(answers, st.Take(nil)...) {
		if a.MAD.Method() != mad.MethodGetResp || a.Undelivered || a.MAD.TID()&0xFF != 0x77 {
			continue
		}
		s := said{answered: true, status: a.MAD.Status()}
		if err := mad.Decode(a.MAD.Data(), &s.info); err != nil {
			e.t.Fatal(err)
		}
		return s
	}
	return said{}
}

// stateFor returns the SM state that is reported to a station.
func (e *env) stateFor(st *sim.Station) ib.SMState {
	e.t.Helper()
	s := e.talk(st, mad.MethodGet, 0, mad.SMInfo{}, 0)
	if !s.answered {
		e.t.Fatal("no answer to a Get of SMInfo")
	}
	return s.info.SMState
}

// inState makes an SM that is in a state, with an allowed peer at h1, where a
// second station can talk to it.
func inState(t *testing.T, state ib.SMState) (*env, *sim.Station) {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 6, Radix: 8})
	l = list(t, l, err)
	cfg := sm.Config{
		Priority: 5, SMKey: rightKey, AuditPeriod: -1,
		Election: sm.ElectionConfig{Allowed: []sm.AllowedSM{{GUID: l.Find("h1").PortGUID(1)}}},
	}
	e := newEnv(t, l, sim.Options{LoseSilently: true}, cfg, 1)
	says := mad.SMInfo{SMKey: rightKey, Priority: 3, SMState: ib.SMStandby}
	if state == ib.SMStandby || state == ib.SMNotActive {
		says.Priority, says.SMState = 9, ib.SMMaster
	}
	if state == ib.SMDiscovering {
		if err := e.fab.SetFault("h4", sim.Fault{Silent: true}); err != nil {
			t.Fatal(err)
		}
	}
	e.addRogue("h1", says)
	peer, err := e.fab.Station("h1", false)
	if err != nil {
		t.Fatal(err)
	}
	e.start()
	if state == ib.SMDiscovering {
		e.run(10 * time.Millisecond)
	} else {
		e.run(1500 * time.Millisecond)
	}
	if state == ib.SMNotActive {
		if s := e.talk(peer, mad.MethodSet, mad.SMInfoDisable, payload(peer, ib.SMMaster), 0); s.status != mad.StatusOK || !s.answered {
			t.Fatalf("DISABLE by the master: %+v", s)
		}
	}
	if got := e.stateFor(peer); got != state {
		t.Fatalf("we are %v, want %v for the test; events %v", got, state, e.events)
	}
	return e, peer
}

// payload is what an SM that may command shows of itself.
func payload(st *sim.Station, state ib.SMState) mad.SMInfo {
	return mad.SMInfo{GUID: st.GUID(), SMKey: rightKey, Priority: 9, SMState: state}
}

var (
	smStates   = []ib.SMState{ib.SMNotActive, ib.SMDiscovering, ib.SMStandby, ib.SMMaster}
	smControls = []mad.SMInfoControl{
		mad.SMInfoHandover, mad.SMInfoAcknowledge, mad.SMInfoDisable, mad.SMInfoStandby, mad.SMInfoDiscover, 0, 6, 0xFFFFFFFF,
	}
)

// TestCommandsByRight sends every control code in every pair of states from an
// SM that may, and holds what follows to the table of the standard.
func TestCommandsByRight(t *testing.T) {
	type key struct {
		control     mad.SMInfoControl
		sender, own ib.SMState
	}
	// These commands are legal. The value is the state that others see afterwards.
	legal := map[key]ib.SMState{
		{mad.SMInfoHandover, ib.SMMaster, ib.SMDiscovering}: ib.SMMaster,
		{mad.SMInfoHandover, ib.SMMaster, ib.SMStandby}:     ib.SMMaster,
		{mad.SMInfoHandover, ib.SMMaster, ib.SMMaster}:      ib.SMMaster,
		{mad.SMInfoAcknowledge, ib.SMStandby, ib.SMStandby}: ib.SMStandby,
		{mad.SMInfoDisable, ib.SMMaster, ib.SMStandby}:      ib.SMNotActive,
		{mad.SMInfoStandby, ib.SMMaster, ib.SMNotActive}:    ib.SMStandby,
		{mad.SMInfoDiscover, ib.SMMaster, ib.SMStandby}:     ib.SMDiscovering,
		{mad.SMInfoDiscover, ib.SMMaster, ib.SMMaster}:      ib.SMDiscovering,
	}
	for _, own := range smStates {
		for _, sender := range smStates {
			for _, control := range smControls {
				t.Run(fmt.Sprintf("%v from %v to %v", control, sender, own), func(t *testing.T) {
					e, peer := inState(t, own)
					e.takeEvents()
					s := e.talk(peer, mad.MethodSet, control, payload(peer, sender), 0)
					after, ok := legal[key{control, sender, own}]
					if !s.answered || (s.status == mad.StatusOK) != ok || !ok && s.status != mad.StatusInvalidField {
						t.Fatalf("answer %+v, want legal: %v", s, ok)
					}
					if s.info.SMState != own {
						t.Errorf("the answer shows %v, want the state at the command, %v", s.info.SMState, own)
					}
					if !ok {
						after = own
						if !slices.ContainsFunc(e.takeEvents(), isRefusal) {
							t.Error("it was not reported")
						}
					}
					// Discovering ends soon, and the state after it depends on the other SM: look at the events.
					discovers := func(ev sm.Event) bool { c, is := ev.(*sm.StateChanged); return is && c.State == ib.SMDiscovering }
					if ok && after == ib.SMDiscovering {
						if !slices.ContainsFunc(e.events, discovers) {
							t.Error("we did not discover anew")
						}
					} else if got := e.stateFor(peer); got != after {
						t.Errorf("we are %v, want %v", got, after)
					}
				})
			}
		}
	}
}

func isRefusal(ev sm.Event) bool { _, ok := ev.(*sm.SMInfoRefused); return ok }

// TestCommandsWithoutRight sends every control code to an SM in every state from senders without the right to do so.
// Nothing is answered and nothing changes. The source of the command is reported, ever more rarely.
func TestCommandsWithoutRight(t *testing.T) {
	for _, own := range smStates {
		for _, tt := range []struct {
			name, from string
			forge      func(*mad.SMInfo, *env)
			byLID      bool
			want       string
		}{
			{name: "wrong key", from: "h1", forge: func(si *mad.SMInfo, _ *env) { si.SMKey = wrongKey }, want: "SM_Key is not ours"},
			{name: "no key", from: "h1", forge: func(si *mad.SMInfo, _ *env) { si.SMKey = ib.SMKey{} }, want: "SM_Key is not ours"},
			{name: "host that knows the key", from: "h2", want: "no subnet manager is allowed there"},
			{name: "host that says it is the peer", from: "h2", forge: func(si *mad.SMInfo, e *env) {
				si.GUID = e.list.Find("h1").PortGUID(1)
			}, want: "another port has the GUID"},
			{name: "peer under another name", from: "h1", forge: func(si *mad.SMInfo, _ *env) { si.GUID = 0x99 }, want: "another port has the GUID"},
			{name: "peer without a name", from: "h1", forge: func(si *mad.SMInfo, _ *env) { si.GUID = 0 }, want: "another port has the GUID"},
			{name: "routed by LID", from: "h1", byLID: true, want: "where it comes from is not known"},
		} {
			if tt.byLID && own != ib.SMMaster {
				continue // no port has a LID yet
			}
			t.Run(fmt.Sprintf("%s to %v", tt.name, own), func(t *testing.T) {
				e, peer := inState(t, own)
				st := peer
				if tt.from != "h1" {
					var err error
					if st, err = e.fab.Station(tt.from, false); err != nil {
						t.Fatal(err)
					}
				}
				lid := ib.LID(0)
				if tt.byLID {
					lid = e.fab.PortInfo("sm", 1).LID
				}
				e.takeEvents()
				for range 3 {
					for _, control := range smControls {
						for _, state := range smStates {
							si := mad.SMInfo{GUID: st.GUID(), SMKey: rightKey, Priority: 15, SMState: state}
							if tt.forge != nil {
								tt.forge(&si, e)
							}
							if s := e.talk(st, mad.MethodSet, control, si, lid); s.answered {
								t.Fatalf("%v in state %v was answered: %+v", control, state, s)
							}
						}
					}
				}
				if got := e.stateFor(peer); got != own {
					t.Errorf("we are %v, want %v as before", got, own)
				}
				told := 0
				for _, ev := range e.takeEvents() {
					if ref, ok := ev.(*sm.SMInfoRefused); ok {
						told++
						if !strings.Contains(ref.String(), tt.want) || !tt.byLID && ref.Place != placeOf(e.list, tt.from) {
							t.Errorf("told %q at %v, want %q", ref, ref.Place, tt.want)
						}
					}
				}
				if told == 0 || told > 8 {
					t.Errorf("told %d times of 96", told)
				}
			})
		}
	}
}

// TestWhoIsShownTheKey: an answer shows the SM_Key only when its way ends at an
// allowed SM.
func TestWhoIsShownTheKey(t *testing.T) {
	for _, own := range smStates {
		e, peer := inState(t, own)
		host, err := e.fab.Station("h2", false)
		if err != nil {
			t.Fatal(err)
		}
		lid := e.fab.PortInfo("sm", 1).LID
		for _, tt := range []struct {
			name  string
			st    *sim.Station
			lid   ib.LID
			shown bool
		}{
			{"peer", peer, 0, true}, {"host", host, 0, false}, {"peer by LID", peer, lid, false}, {"host by LID", host, lid, false},
		} {
			if tt.lid == 0 && strings.Contains(tt.name, "LID") {
				continue // no port has one yet
			}
			s := e.talk(tt.st, mad.MethodGet, 0, mad.SMInfo{GUID: peer.GUID(), SMKey: rightKey, SMState: ib.SMMaster}, tt.lid)
			if !s.answered || s.info.SMKey.IsZero() == tt.shown || tt.shown && s.info.SMKey != rightKey {
				t.Errorf("%v, %s: answered %v, key shown %v, want %v", own, tt.name, s.answered, !s.info.SMKey.IsZero(), tt.shown)
			}
		}
	}
}

// TestForgedReturnPath: a directed route that came from a LID passed no switch that wrote its return path, and its answer
// would go to that LID. Such a request neither brings out the key nor commands, whatever its path says.
func TestForgedReturnPath(t *testing.T) {
	const host = ib.LID(77)
	for _, own := range smStates {
		e, peer := inState(t, own)
		at := e.list.Find("h1").Ports[1].PeerPort
		forged := func(method mad.Method, control mad.SMInfoControl, state ib.SMState) *sm.Received {
			in := &sm.Received{LID: host}
			route := mad.MakeRoute(at, 1)
			mad.NewSMP(&in.MAD, mad.Header{Method: method, TID: 5, Attr: mad.AttrSMInfo, Mod: uint32(control)}, &route, ib.MKey{})
			in.MAD.ReturnPath()[1], in.MAD.ReturnPath()[2] = byte(at), 1
			si := payload(peer, state)
			if err := mad.Encode(in.MAD.Data(), &si); err != nil {
				t.Fatal(err)
			}
			return in
		}
		e.logAnswer = func(a *sm.Response) {
			var si mad.SMInfo
			if mad.Decode(a.MAD.Data(), &si) == nil && si.SMKey == rightKey {
				t.Errorf("%v: the key goes to LID %v", own, a.LID)
			}
		}
		e.step(forged(mad.MethodGet, 0, 0))
		e.takeEvents()
		for _, control := range smControls {
			for _, state := range smStates {
				e.step(forged(mad.MethodSet, control, state))
			}
		}
		for _, ev := range e.takeEvents() {
			if c, ok := ev.(*sm.StateChanged); ok {
				t.Errorf("%v obeyed: %v", own, c)
			}
		}
	}
}

func placeOf(l *netlist.Netlist, host string) ib.Place {
	p := l.Find(host).Ports[1]
	return ib.Place{Switch: l.Find(p.Peer).GUID, Port: p.PeerPort}
}

// TestPinnedPeer checks that an SM that is allowed at one switch port is not accepted elsewhere.
func TestPinnedPeer(t *testing.T) {
	for _, tt := range []struct {
		at   string // the place that is allowed is that of this host
		want ib.SMState
	}{{"h1", ib.SMStandby}, {"h2", ib.SMMaster}} {
		l := tree(t, 4, 4)
		e := newEnv(t, l, sim.Options{}, sm.Config{
			SMKey:    rightKey,
			Election: sm.ElectionConfig{Allowed: []sm.AllowedSM{{GUID: l.Find("h1").PortGUID(1), Place: placeOf(l, tt.at)}}},
		}, 1)
		e.addRogue("h1", mad.SMInfo{SMKey: rightKey, Priority: 15, SMState: ib.SMMaster})
		e.start()
		e.run(time.Second)
		if e.view.State != tt.want {
			t.Errorf("allowed at the place of %s: we are %v, want %v", tt.at, e.view.State, tt.want)
		}
	}
}

// FuzzSMInfo: whatever arrives as SMInfo from a host neither stops the SM nor
// changes its state nor brings out the key.
func FuzzSMInfo(f *testing.F) {
	f.Add(uint8(2), uint32(1), []byte{0, 0, 0, 0, 0, 0, 0, 1}, uint8(2))
	f.Add(uint8(1), uint32(0), []byte(nil), uint8(0))
	f.Add(uint8(2), uint32(3), make([]byte, 256), uint8(63))
	f.Fuzz(func(t *testing.T, method uint8, mod uint32, data []byte, hops uint8) {
		e, peer := inState(t, ib.SMMaster)
		var m mad.MAD
		route := routeBetween(e.list, "sm")
		mad.NewSMP(&m, mad.Header{Method: mad.Method(method), TID: 5, Attr: mad.AttrSMInfo, Mod: mod}, &route, ib.MKey{})
		copy(m.ReturnPath(), data)
		copy(m.Data(), data)
		m[7] = hops // hop count, whatever the paths say
		answers := len(e.inbox)
		e.logAnswer = func(a *sm.Response) {
			answers++
			var si mad.SMInfo
			if a.MAD.Attr() == mad.AttrSMInfo && mad.Decode(a.MAD.Data(), &si) == nil && si.SMKey == rightKey {
				if back := a.MAD.ReturnRoute(); back.Len() != 2 || back.At(1) != 1 || back.At(0) != e.list.Find("h1").Ports[1].PeerPort {
					t.Errorf("the key went out along %v", back)
				}
			}
		}
		e.step(&sm.Received{MAD: m, LID: ib.PermissiveLID})
		e.logAnswer = nil
		if got := e.stateFor(peer); got != ib.SMMaster {
			t.Errorf("we are %v", got)
		}
	})
}
