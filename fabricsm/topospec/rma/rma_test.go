package rma_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/rma"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/topospec/verify"
)

const (
	spare1 ib.GUID = 0x0020000000009001
	spare2 ib.GUID = 0x0020000000009002
	other  ib.GUID = 0x0020000000009101
	sw2    ib.GUID = 0x0010000000009001
)

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

func base(t *testing.T) *topospec.Revision {
	return topospectest.Revision(
		t, topospectest.Small(),
		"spare-1,0x0020000000009001,ConnectX-6,,spare", "spare-2,0x0020000000009002,ConnectX-6,,spare",
		"other,0x0020000000009101,ConnectX-7,,spare", "switch-2,0x0010000000009001,MSX6036,,spare",
	)
}

// open opens a window for an adapter and returns the specification that has it.
func open(t *testing.T) (*rma.Adapter, *topospec.Spec, topospec.End) {
	t.Helper()
	r := base(t)
	old := topospectest.Device(t, r, "host-0002 mlx5_1").GUID
	a, next, err := rma.OpenAdapter(topospectest.Spec(t, r), old, "T-7", "ada", start, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a, topospectest.Spec(t, next), a.At
}

func TestAdapter(t *testing.T) {
	a, s, at := open(t)
	a = written(t, a)
	f, sm := topospectest.Fabric(t, s.Revision())
	j := verify.New(s, topospec.Enforce, nil)
	verify.Sweep(j, f, sm)
	seen := verify.Seen{At: at.Place(), GUID: spare1, Port: 1, Type: ib.NodeCA, NumPorts: 1, PortGUID: spare1, SystemImage: spare1}
	if r := j.Link(seen); r.Verdict != verify.RMACandidate || r.Action != verify.Hold {
		t.Fatalf("the judge says %v %v", r.Verdict, r.Action)
	}
	now := start.Add(10 * time.Minute)
	if err := a.Seen(s, at, spare1, now); err != nil || a.State != rma.Candidate {
		t.Fatalf("%v, %v", a.State, err)
	}
	if _, err := a.Accept(s, "bob", now); !errors.Is(err, rma.ErrRefused) {
		t.Errorf("accepted before the host attested: %v", err)
	}
	if err := a.Attest(s, rma.Proof{Host: "host-0002", GUID: spare1, Fresh: true}, now); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Accept(s, "", now); !errors.Is(err, rma.ErrRefused) {
		t.Errorf("accepted by nobody: %v", err)
	}
	next, err := a.Accept(s, "bob", now)
	if err != nil {
		t.Fatal(err)
	}
	if d := topospectest.Device(t, next, "host-0002 mlx5_1"); d.GUID != spare1 || d.Host != "host-0002" || d.Stock != topospec.InUse {
		t.Errorf("the new one: %+v", d)
	}
	spec := topospectest.Spec(t, next)
	if d := spec.Device(spec.DeviceByGUID(a.Old)); d.Stock != topospec.Retired {
		t.Errorf("the old one: %+v", d)
	}
	j.Activate(spec)
	if err := j.Release(at.Place(), "bob", "RMA T-7"); err == nil {
		t.Error("the port still waits")
	}
	if !j.IsVerified(at.Place()) {
		t.Error("the new adapter is not verified")
	}
	seen.GUID, seen.PortGUID, seen.SystemImage = a.Old, a.Old, a.Old
	if r := j.Link(seen); r.Verdict != verify.RetiredGUID {
		t.Errorf("the old one comes back: %v", r.Verdict)
	}
}

func TestAdapterRefused(t *testing.T) {
	proof := rma.Proof{Host: "host-0002", GUID: spare1, Fresh: true}
	now := start.Add(time.Minute)
	for _, tt := range []struct {
		name string
		do   func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error
		want string
	}{
		{"after expiry", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error {
			return a.Seen(s, at, spare1, start.Add(time.Hour))
		}, "the window is expired"},
		{"another model", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error { return a.Seen(s, at, other, now) }, "is a ConnectX-7, the old one a ConnectX-6"},
		{"another port", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error {
			at.Port++
			return a.Seen(s, at, spare1, now)
		}, "the window is for"},
		{"no spare", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error { return a.Seen(s, at, 0x99, now) }, "is no spare"},
		{"two race", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error {
			if err := a.Seen(s, at, spare1, now); err != nil {
				return err
			}
			err := a.Seen(s, at, spare2, now)
			if a.State != rma.Open || a.New != 0 {
				return errors.New("one of them won")
			}
			return err
		}, "two devices were seen"},
		{"no candidate", func(a *rma.Adapter, s *topospec.Spec, _ topospec.End) error { return a.Attest(s, proof, now) }, "there is no candidate"},
		{"another GUID is attested", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error {
			p := proof
			p.GUID = spare2
			return errors.Join(a.Seen(s, at, spare1, now), a.Attest(s, p, now))
		}, "the host attests"},
		{"another host attests", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error {
			p := proof
			p.Host = "host-0003"
			return errors.Join(a.Seen(s, at, spare1, now), a.Attest(s, p, now))
		}, `the proof is of host "host-0003"`},
		{"an old proof", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error {
			p := proof
			p.Fresh = false
			return errors.Join(a.Seen(s, at, spare1, now), a.Attest(s, p, now))
		}, "the proof is old"},
		{"attested, then too late", func(a *rma.Adapter, s *topospec.Spec, at topospec.End) error {
			err := errors.Join(a.Seen(s, at, spare1, now), a.Attest(s, proof, now))
			_, late := a.Accept(s, "bob", start.Add(2*time.Hour))
			return errors.Join(err, late)
		}, "it is expired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, s, at := open(t)
			if err := tt.do(a, s, at); !errors.Is(err, rma.ErrRefused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestOpenRefused(t *testing.T) {
	r := base(t)
	s := topospectest.Spec(t, r)
	old := topospectest.Device(t, r, "host-0002 mlx5_1").GUID
	for name, do := range map[string]func() error{
		"no ticket":  func() error { _, _, err := rma.OpenAdapter(s, old, "", "ada", start, time.Hour); return err },
		"for ever":   func() error { _, _, err := rma.OpenAdapter(s, old, "T", "ada", start, 1000*time.Hour); return err },
		"no adapter": func() error { _, _, err := rma.OpenAdapter(s, sw2, "T", "ada", start, time.Hour); return err },
		"spare":      func() error { _, _, err := rma.OpenAdapter(s, spare1, "T", "ada", start, time.Hour); return err },
		"SM": func() error {
			_, _, err := rma.OpenAdapter(s, topospectest.Device(t, r, "sm-1").GUID, "T", "ada", start, time.Hour)
			return err
		},
		"wrong switch": func() error {
			_, _, err := rma.OpenSwitch(s, old, sw2, 0, "T", "ada", start, time.Hour)
			return err
		},
		"no spare switch": func() error {
			_, _, err := rma.OpenSwitch(s, topospectest.Device(t, r, "leaf-2").GUID, spare1, 0, "T", "ada", start, time.Hour)
			return err
		},
		"a switch without a ticket": func() error {
			_, _, err := rma.OpenSwitch(s, topospectest.Device(t, r, "leaf-2").GUID, sw2, 0, "", "ada", start, time.Hour)
			return err
		},
	} {
		if err := do(); !errors.Is(err, rma.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExpiryEndsMaintenance(t *testing.T) {
	a, s, _ := open(t)
	if a.Tick(start.Add(time.Minute)) || !a.Tick(start.Add(time.Hour)) {
		t.Error("it does not expire when it should")
	}
	r, err := a.Close(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Links {
		if l.State == topospec.Maintenance {
			t.Errorf("%v is still under maintenance", l.A)
		}
	}
}

// written returns a flow after it was stored and read again.
func written[T any](t *testing.T, flow *T) *T {
	t.Helper()
	data, err := json.Marshal(flow)
	if err != nil {
		t.Fatal(err)
	}
	back := new(T)
	if err := json.Unmarshal(data, back); err != nil {
		t.Fatal(err)
	}
	return back
}

// TestSwitch replaces a switch: the new one is held while its place is under
// maintenance, then has it without its hosts, then with them. Between any two steps the
// flow is written down.
func TestSwitch(t *testing.T) {
	r := base(t)
	old := topospectest.Device(t, r, "leaf-2").GUID
	w, window, err := rma.OpenSwitch(topospectest.Spec(t, r), old, sw2, 0, "T-8", "ada", start, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	now := start.Add(time.Minute)
	s := topospectest.Spec(t, window)
	f, sm := topospectest.Fabric(t, r)
	j := verify.New(s, topospec.Enforce, nil)
	if verify.Sweep(j, f, sm); j.Score() != 1000 {
		t.Errorf("score %v with the old switch under maintenance", j.Score())
	}
	up := s.Belongs(topospec.End{GUID: old, Port: 19})
	seen := verify.Seen{At: up.Place(), GUID: sw2, Port: 19, Type: ib.NodeSwitch, NumPorts: 36, PortGUID: sw2, SystemImage: sw2}
	if v := j.Link(seen); v.Verdict != verify.RMACandidate || v.Action != verify.Hold {
		t.Fatalf("the new switch is %v, %v", v.Verdict, v.Action)
	}
	w = written(t, w)
	if err := w.Seen(other, now); !errors.Is(err, rma.ErrRefused) {
		t.Errorf("another switch is taken: %v", err)
	}
	if err := w.Seen(sw2, now); err != nil || w.State != rma.Candidate {
		t.Fatalf("%v, %v", w.State, err)
	}
	if _, err := w.Open(j); !errors.Is(err, rma.ErrRefused) {
		t.Errorf("opened before it has its place: %v", err)
	}
	first, err := w.Replace(s, now)
	if err != nil {
		t.Fatal(err)
	}
	w = written(t, w)
	s = topospectest.Spec(t, first)
	f, sm = topospectest.Fabric(t, first)
	j = verify.New(s, topospec.Enforce, nil)
	if _, err := w.Open(j); !errors.Is(err, rma.ErrRefused) {
		t.Errorf("opened before its links are verified: %v", err)
	}
	host := ib.Place{Switch: sw2, Port: 1}
	if verify.Sweep(j, f, sm); j.Before(host) != verify.PlanDisable {
		t.Errorf("the port of a host: %v, want disable", j.Before(host))
	}
	if w.Tick(start.Add(2 * time.Hour)) {
		t.Error("a switch that has its place expires")
	}
	second, err := w.Open(j)
	if err != nil {
		t.Fatal(err)
	}
	j.Activate(topospectest.Spec(t, second))
	f, sm = topospectest.Fabric(t, second)
	if verify.Sweep(j, f, sm); !j.IsVerified(host) || j.Score() != 1000 {
		t.Errorf("score %v after the replacement", j.Score())
	}
	spec := j.Spec()
	if d := spec.Device(spec.DeviceByGUID(old)); d.Stock != topospec.Retired {
		t.Errorf("the old switch: %+v", d)
	}
	if v := j.Link(verify.Seen{At: up.Place(), GUID: old, Port: 19, Type: ib.NodeSwitch, NumPorts: 36, PortGUID: old}); v.Verdict != verify.RetiredGUID || v.Action != verify.Disable {
		t.Errorf("the old switch comes back: %v, %v", v.Verdict, v.Action)
	}
	onlyThese(t, r, second, map[ib.GUID]ib.GUID{old: sw2})
}

// onlyThese reports what differs between two revisions beyond the GUIDs that were
// replaced.
func onlyThese(t *testing.T, before, after *topospec.Revision, replaced map[ib.GUID]ib.GUID) {
	t.Helper()
	back := after.Clone()
	for old, now := range replaced {
		for i := range back.Links {
			for _, e := range [2]*topospec.End{&back.Links[i].A, &back.Links[i].B} {
				if e.GUID == now {
					e.GUID = old
				}
			}
		}
	}
	back.Normalize()
	was := before.Clone()
	was.Normalize()
	for i := range was.Links {
		was.Links[i].Line, back.Links[i].Line = 0, 0
	}
	if d := cmp.Diff(back.Links, was.Links); d != "" {
		t.Errorf("links (-after +before):\n%s", d)
	}
}

func TestSwitchExpires(t *testing.T) {
	r := base(t)
	w, window, err := rma.OpenSwitch(topospectest.Spec(t, r), topospectest.Device(t, r, "leaf-2").GUID, sw2, 0, "T-8", "ada", start, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := topospectest.Spec(t, window)
	if _, err := w.Replace(s, start.Add(time.Hour)); !errors.Is(err, rma.ErrRefused) || w.State != rma.Expired {
		t.Errorf("replaced after the window: %v, %v", w.State, err)
	}
	closed, err := w.Close(s)
	if err != nil {
		t.Fatal(err)
	}
	onlyThese(t, r, closed, nil)
}
