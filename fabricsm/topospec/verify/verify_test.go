package verify_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/topospec/verify"
)

// TestVerdicts: each way to be wrong, in a fabric of three levels under
// enforcement. Only the guilty ports are acted on (T17 to T28, T148 to T152).
func TestVerdicts(t *testing.T) {
	maintained := func(r *topospec.Revision) {
		for i := range r.Links {
			if b := r.Links[i].B; b.GUID == topospectest.Device(t, r, "host-0002 mlx5_1").GUID {
				r.Links[i].State = topospec.Maintenance
			}
		}
	}
	for _, tt := range []struct {
		name   string
		spec   func(*topospec.Revision)
		change func(b *bench)
		want   []string
	}{
		{"as specified", nil, func(*bench) {}, nil},
		{"T17 the GUID of a live host", nil, func(b *bench) { b.as(b.fact("leaf-1", 2), "host-0009 mlx5_1") }, []string{"leaf-1/2 spoof disable disabled"}},
		{"T18 the GUID of a dark host", nil, func(b *bench) {
			dark := b.fact("leaf-4", 3)
			at := dark.At
			b.facts = slices.DeleteFunc(b.facts, func(s verify.Seen) bool { return s.At == at })
			b.as(b.fact("leaf-1", 2), "host-0012 mlx5_1")
		}, []string{"leaf-1/2 spoof disable disabled"}},
		{"T19 an unknown GUID", nil, func(b *bench) { b.fact("leaf-1", 2).GUID = 0x00aa000000000001 }, []string{"leaf-1/2 unknown disable disabled"}},
		{"T20 the Subnet Manager's GUID", nil, func(b *bench) { b.as(b.fact("leaf-2", 2), "sm-1") }, []string{"leaf-2/2 spoof disable disabled"}},
		{"T21 a host that says it is a switch", nil, func(b *bench) { b.fact("leaf-1", 2).Type = ib.NodeSwitch }, []string{"leaf-1/2 type_mismatch disable disabled"}},
		{"T21 and with a new GUID", nil, func(b *bench) {
			s := b.fact("leaf-1", 2)
			s.Type, s.GUID = ib.NodeSwitch, 0x00aa000000000001
		}, []string{"leaf-1/2 type_mismatch disable disabled"}},
		{"the GUID of a switch", nil, func(b *bench) { b.as(b.fact("leaf-1", 2), "spine-1-1-1") }, []string{"leaf-1/2 spoof disable disabled"}},
		{"a retired GUID", nil, func(b *bench) { b.as(b.fact("leaf-1", 2), "old-1") }, []string{"leaf-1/2 retired disable disabled"}},
		{"the port GUID of another, under its own node GUID", nil, func(b *bench) {
			b.fact("leaf-1", 2).PortGUID = b.fact("leaf-3", 3).PortGUID
		}, []string{"leaf-1/2 spoof disable disabled"}},
		{"a port GUID that the specification names for another", func(r *topospec.Revision) {
			topospectest.Device(t, r, "host-0009 mlx5_1").PortGUIDs = []ib.GUID{0x00bb000000007777}
		}, func(b *bench) { b.fact("leaf-1", 2).PortGUID = 0x00bb000000007777 }, []string{"leaf-1/2 spoof disable disabled"}},
		{"the GUID of a switch as a port GUID", nil, func(b *bench) {
			b.fact("leaf-1", 2).PortGUID = b.fact("leaf-1", 2).At.Switch
		}, []string{"leaf-1/2 spoof disable disabled"}},
		{"the same where GUIDs are not compared", func(r *topospec.Revision) { r.Policy.Fields.GUID = topospec.FieldOff }, func(b *bench) {
			b.fact("leaf-1", 2).PortGUID = b.fact("leaf-1", 2).At.Switch
		}, nil},
		{"a spare with the port GUID of another, under maintenance", maintained, func(b *bench) {
			port := b.fact("leaf-3", 3).PortGUID
			b.as(b.fact("leaf-1", 2), "spare-1")
			b.fact("leaf-1", 2).PortGUID = port
		}, []string{"leaf-1/2 unknown disable disabled"}},
		{"a spare with the system image of another, under maintenance", maintained, func(b *bench) {
			b.as(b.fact("leaf-1", 2), "spare-1")
			b.fact("leaf-1", 2).SystemImage = b.fact("leaf-3", 3).GUID
		}, []string{"leaf-1/2 unknown disable disabled"}},
		{"a spare that is not the one of inventory, under maintenance", func(r *topospec.Revision) {
			maintained(r)
			d := topospectest.Device(t, r, "spare-1")
			d.SystemImage, d.PortGUIDs = d.GUID, []ib.GUID{d.GUID}
		}, func(b *bench) { b.as(b.fact("leaf-1", 2), "spare-1") }, []string{"leaf-1/2 unknown disable disabled"}},
		{"a spare without maintenance (T151)", nil, func(b *bench) { b.as(b.fact("leaf-1", 2), "spare-1") }, []string{"leaf-1/2 unknown disable disabled"}},
		{"T26 zero", nil, func(b *bench) { b.fact("leaf-1", 2).GUID = 0 }, []string{"leaf-1/2 malformed disable disabled"}},
		{"T26 group", nil, func(b *bench) { b.fact("leaf-1", 2).GUID = 0x0100000000000001 }, []string{"leaf-1/2 malformed disable disabled"}},
		{"T24 two hosts swap GUIDs", nil, func(b *bench) {
			x, y := b.fact("leaf-1", 2), b.fact("leaf-3", 1)
			b.as(x, "host-0007 mlx5_1")
			b.as(y, "host-0002 mlx5_1")
		}, []string{"leaf-1/2 swapped disable disabled", "leaf-3/1 swapped disable disabled"}},
		{"T148 two trunks swapped", nil, func(b *bench) {
			x, y := b.fact("leaf-1", 19), b.fact("leaf-1", 28)
			x.GUID, x.PortGUID, y.GUID, y.PortGUID = y.GUID, y.PortGUID, x.GUID, x.PortGUID
		}, []string{"leaf-1/19 swapped disable disabled", "leaf-1/28 swapped disable disabled"}},
		{"a trunk at another port", nil, func(b *bench) { b.fact("leaf-1", 19).Port = 36 }, []string{"leaf-1/19 wrong_port disable disabled"}},
		{"T149 a cable from elsewhere at a spare port", nil, func(b *bench) {
			s := b.fact("leaf-2", 10)
			s.GUID, s.Port, s.Type = 0x00aa000000000001, 1, ib.NodeCA
		}, []string{"leaf-2/10 reserved disable disabled"}},
		{"T150 a switch at a spare port", nil, func(b *bench) {
			s := b.fact("leaf-2", 10)
			s.GUID, s.Port, s.Type = 0x00aa000000000001, 1, ib.NodeSwitch
		}, []string{"leaf-2/10 reserved disable disabled"}},
		{"T150 a loopback plug", nil, func(b *bench) {
			s := b.fact("leaf-2", 10)
			b.as(s, "leaf-2")
			s.Port = 10
		}, []string{"leaf-2/10 reserved disable disabled"}},
		{"RMA: a spare of the model", maintained, func(b *bench) { b.as(b.fact("leaf-1", 2), "spare-1") }, []string{"leaf-1/2 rma_candidate hold held"}},
		{"RMA: a spare of another model", maintained, func(b *bench) { b.as(b.fact("leaf-1", 2), "spare-2") }, []string{"leaf-1/2 unknown disable disabled"}},
		{"RMA: a live host's GUID", maintained, func(b *bench) { b.as(b.fact("leaf-1", 2), "host-0001 mlx5_1") }, []string{"leaf-1/2 spoof disable disabled"}},
		{"RMA: the old one is still there", maintained, func(*bench) {}, nil},
		{"T28 adapters of one host exchanged", func(r *topospec.Revision) {
			topospectest.Device(t, r, "host-0001 mlx5_1").Host = "box"
			topospectest.Device(t, r, "host-0005 mlx5_1").Host = "box"
		}, func(b *bench) {
			b.as(b.fact("leaf-1", 1), "host-0005 mlx5_1")
			b.as(b.fact("leaf-2", 2), "host-0001 mlx5_1")
		}, []string{"leaf-1/1 intra_host_swap disable disabled", "leaf-2/2 intra_host_swap disable disabled"}},
		{"unplanned port, disable", func(r *topospec.Revision) { r.Links = drop(r, t, "leaf-2", 10) }, func(b *bench) {
			s := b.fact("leaf-2", 10)
			s.GUID, s.Type = 0x00aa000000000001, ib.NodeCA
		}, []string{"leaf-2/10 unplanned disable disabled"}},
		{"unplanned port, hold", func(r *topospec.Revision) {
			r.Links, r.Policy.Unknown = drop(r, t, "leaf-2", 10), topospec.UnknownHold
		}, func(b *bench) {
			s := b.fact("leaf-2", 10)
			s.GUID, s.Type = 0x00aa000000000001, ib.NodeCA
		}, []string{"leaf-2/10 unplanned hold held"}},
		{"unplanned port, warn, but a GUID of somebody", func(r *topospec.Revision) {
			r.Links, r.Policy.Unknown = drop(r, t, "leaf-2", 10), topospec.UnknownWarn
		}, func(b *bench) { b.as(b.fact("leaf-2", 10), "host-0001 mlx5_1") }, []string{"leaf-2/10 spoof disable disabled"}},
		{"unplanned port, warn, but the port GUID of somebody", func(r *topospec.Revision) {
			r.Links, r.Policy.Unknown = drop(r, t, "leaf-2", 10), topospec.UnknownWarn
			d := topospectest.Device(t, r, "host-0001 mlx5_1")
			d.PortGUIDs = []ib.GUID{d.GUID + 1}
		}, func(b *bench) {
			s := b.fact("leaf-2", 10)
			b.as(s, "host-0001 mlx5_1")
			s.GUID = 0x00aa000000000001
		}, []string{"leaf-2/10 spoof disable disabled"}},
		{"a boundary", func(r *topospec.Revision) {
			for i := range r.Links {
				if r.Links[i].B.GUID == topospectest.Device(t, r, "host-0002 mlx5_1").GUID {
					r.Links[i].State = topospec.NoDiscover
				}
			}
		}, func(b *bench) { b.as(b.fact("leaf-1", 2), "host-0002 mlx5_1") }, []string{"leaf-1/2 no_discover leave seen"}},
		{"port GUID enforced", func(r *topospec.Revision) {
			topospectest.Device(t, r, "host-0002 mlx5_1").PortGUIDs = []ib.GUID{0x0020000000008888}
			r.Policy.Fields.PortGUID = topospec.FieldEnforce
		}, func(b *bench) { b.fact("leaf-1", 2).PortGUID++ }, []string{"leaf-1/2 attributes disable disabled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.spec)
			j := verify.New(b.spec, topospec.Enforce, nil)
			tt.change(b)
			b.tell(j)
			if diff := cmp.Diff(b.wrong(j), tt.want); diff != "" {
				t.Errorf("not verified (-got +want):\n%s", diff)
			}
		})
	}
}

// TestModes: below enforcement nothing is acted on, and nothing wrong is verified.
func TestModes(t *testing.T) {
	b := newBench(t, nil)
	b.as(b.fact("leaf-1", 2), "host-0009 mlx5_1")
	at := b.fact("leaf-1", 2).At
	for _, tt := range []struct {
		mode  topospec.Mode
		alarm bool
		want  verify.Action
	}{{topospec.Observe, false, verify.Admit}, {topospec.Warn, true, verify.Admit}, {topospec.Enforce, true, verify.Disable}} {
		j := verify.New(b.spec, tt.mode, nil)
		b.tell(j)
		r := j.Link(*b.fact("leaf-1", 2))
		if r.Verdict != verify.Spoof || r.Action != tt.want || r.Would != verify.Disable || r.Alarm != tt.alarm || j.IsVerified(at) {
			t.Errorf("%v: %+v", tt.mode, r)
		}
	}
}

// TestFieldWarns: a field that policy only warns of does not keep a link from
// being verified, and raises an alarm.
func TestFieldWarns(t *testing.T) {
	b := newBench(t, func(r *topospec.Revision) {
		r.Policy.Fields.SystemImage = topospec.FieldWarn
		topospectest.Device(t, r, "host-0002 mlx5_1").SystemImage = 0x0020000000008888
	})
	j := verify.New(b.spec, topospec.Enforce, nil)
	b.fact("leaf-1", 2).SystemImage = 1
	b.tell(j)
	if r := j.Link(*b.fact("leaf-1", 2)); r.Verdict != verify.Verified || r.Fields != verify.FieldSystemImage || !r.Alarm {
		t.Errorf("%+v", r)
	}
}

// TestNothingBehindTheUnverified: a device behind a switch that is not verified waits, and is judged as soon as the switch
// is.
func TestNothingBehindTheUnverified(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Enforce, nil)
	host := *b.fact("leaf-4", 1)
	if plan := j.Before(host.At); plan != verify.PlanHold {
		t.Errorf("plan %v before the switch is verified, want hold", plan)
	}
	if r := j.Link(host); r.Verdict != verify.Held || r.Action != verify.Hold {
		t.Errorf("before the switch is verified: %+v", r)
	}
	b.tell(j)
	if !j.IsVerified(host.At) {
		t.Error("the host is not verified when its switch is")
	}
	if got := j.Score(); got != 1000 {
		t.Errorf("score %v", got)
	}
	for _, sw := range []string{"core-1-1", "core-2-1"} {
		j.Forget(topospectest.Device(t, b.rev, sw).GUID)
	}
	for _, sw := range []string{"spine-2-1-1", "spine-2-1-2", "leaf-3", "leaf-4"} {
		for port := ib.PortNum(1); port <= 36; port++ {
			j.Down(ib.Place{Switch: topospectest.Device(t, b.rev, sw).GUID, Port: port})
		}
	}
	for _, sw := range []string{"spine-1-1-1", "spine-1-1-2"} {
		for port := ib.PortNum(19); port <= 36; port++ {
			j.Down(ib.Place{Switch: topospectest.Device(t, b.rev, sw).GUID, Port: port})
		}
	}
	if j.Trusts(topospectest.Device(t, b.rev, "leaf-4").GUID) {
		t.Error("a switch that is gone is still trusted")
	}
	if r := j.Link(host); r.Verdict != verify.Held {
		t.Errorf("behind a switch that is gone: %+v", r)
	}
}

func TestDisabledUntilReleased(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Enforce, nil)
	right := *b.fact("leaf-1", 2)
	b.as(b.fact("leaf-1", 2), "host-0009 mlx5_1")
	b.tell(j)
	j.Down(right.At)
	if r := j.Link(right); r.Action != verify.Disable || r.Verdict != verify.Spoof || j.Before(right.At) != verify.PlanDisable {
		t.Errorf("T23: the right GUID between two wrong ones: %+v", r)
	}
	if err := j.Release(right.At, "", "it is clean"); !errors.Is(err, verify.ErrRefused) {
		t.Errorf("released by nobody: %v", err)
	}
	if err := j.Release(right.At, "ada", "it is clean"); err != nil {
		t.Fatal(err)
	}
	if r := j.Link(right); r.Verdict != verify.Verified {
		t.Errorf("after the release: %+v", r)
	}
	states := []string{}
	for _, c := range j.Changes() {
		if c.At == right.At {
			states = append(states, fmt.Sprintf("%v %v %s", c.To, c.Ruling.Verdict, c.By))
		}
	}
	if diff := cmp.Diff(states, []string{"disabled spoof ", "released spoof ada", "verified verified "}); diff != "" {
		t.Errorf("changes (-got +want):\n%s", diff)
	}
}

// TestPromotion: only an operator promotes, and only with the needed score.
func TestPromotion(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Observe, nil)
	if err := j.SetMode(topospec.Enforce, "ada"); !errors.Is(err, verify.ErrRefused) {
		t.Errorf("enforced with score 0: %v", err)
	}
	b.as(b.fact("leaf-1", 2), "host-0009 mlx5_1")
	b.tell(j)
	if err := j.SetMode(topospec.Enforce, ""); !errors.Is(err, verify.ErrRefused) || j.Mode() != topospec.Observe {
		t.Errorf("enforced by nobody: %v", err)
	}
	j.Changes()
	if err := j.SetMode(topospec.Enforce, "ada"); err != nil {
		t.Fatal(err)
	}
	c := j.Changes()
	if len(c) != 1 || c[0].At != b.fact("leaf-1", 2).At || c[0].To != verify.StateDisabled {
		t.Errorf("what enforcement changed: %+v", c)
	}
	if err := j.SetMode(topospec.Observe, ""); err != nil || j.Link(*b.fact("leaf-1", 2)).Action != verify.Admit {
		t.Errorf("demoted: %v", err)
	}
}

func TestForeignFile(t *testing.T) {
	b := newBench(t, nil)
	other := topospectest.Revision(t, topospectest.Small())
	for i := range other.Devices {
		other.Devices[i].GUID += 0x1000000
	}
	for i := range other.Links {
		if other.Links[i].A.GUID += 0x1000000; !other.Links[i].B.IsZero() {
			other.Links[i].B.GUID += 0x1000000
		}
	}
	j := verify.New(topospectest.Spec(t, other), topospec.Observe, nil)
	verify.Sweep(j, b.fabric, b.sm)
	if err := j.SetMode(topospec.Enforce, "ada"); !errors.Is(err, verify.ErrRefused) || j.Verified() != 0 {
		t.Errorf("the specification of another fabric: %v, %d links verified", err, j.Verified())
	}
}

func TestActivate(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Enforce, nil)
	b.as(b.fact("leaf-1", 2), "spare-1")
	b.tell(j)
	j.Changes()
	next := b.rev.Clone()
	old, spare := topospectest.Device(t, next, "host-0002 mlx5_1"), topospectest.Device(t, next, "spare-1")
	old.Stock, spare.Stock = topospec.Retired, topospec.InUse
	link(b, next, "leaf-1", 2).B.GUID = spare.GUID
	link(b, next, "leaf-2", 3).State = topospec.Disabled
	j.Activate(topospectest.Spec(t, next))
	got := []string{}
	for _, c := range j.Changes() {
		got = append(got, fmt.Sprintf("%v %v to %v %v", c.At.Port, c.From, c.To, c.Ruling.Verdict))
	}
	if diff := cmp.Diff(got, []string{"2 disabled to released verified", "3 verified to disabled disabled"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if r := j.Link(*b.fact("leaf-1", 2)); r.Verdict != verify.Verified {
		t.Errorf("the new adapter: %+v", r)
	}
	if j.Score() != 1000 {
		t.Errorf("score %v, %d of %d", j.Score(), j.Verified(), j.Spec().NumActive())
	}
	trunks := 0
	for i := range next.Links {
		if l := &next.Links[i]; l.State == topospec.Active && (l.Class == topospec.ClassTrunk || l.Class == topospec.ClassUplink || l.Class == topospec.ClassService || l.Class == topospec.ClassInternal) {
			trunks++
		}
	}
	if j.Backbone() != trunks || trunks == 0 {
		t.Errorf("%d verified links without an end of a tenant, want %d", j.Backbone(), trunks)
	}
}

func TestMissing(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Enforce, nil)
	b.tell(j)
	if n := j.NumMissing(); n != 0 {
		t.Errorf("%d missing of a whole fabric", n)
	}
	j.Down(b.fact("leaf-1", 2).At)
	got := []topospec.End{}
	for l := range j.MissingLinks() {
		got = append(got, l.A)
	}
	if diff := cmp.Diff(got, []topospec.End{topospec.EndAt(b.fact("leaf-1", 2).At)}); diff != "" || j.NumMissing() != 1 {
		t.Errorf("missing (-got +want):\n%s", diff)
	}
}

// TestOwnCable: our own cable is never disabled, whatever the specification says.
func TestOwnCable(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Enforce, nil)
	own := b.facts[0]
	own.GUID++
	if r := j.Attach(own); r.Action == verify.Disable || !r.Page {
		t.Errorf("%+v", r)
	}
	if j.Verified() != 0 || j.Trusts(own.At.Switch) {
		t.Error("something is verified from a place that is wrong")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Observe, nil)
	b.tell(j)
	for i := range 100_000 {
		j.Link(verify.Seen{At: ib.Place{Switch: ib.GUID(0x00bb000000000000 + i), Port: 1}, GUID: 0x00cc000000000001})
	}
	if n := len(j.Changes()); n > 20_000 {
		t.Errorf("%d ports of unknown switches are remembered", n)
	}
}

func TestLinkAllocatesNothing(t *testing.T) {
	b := newBench(t, nil)
	j := verify.New(b.spec, topospec.Enforce, nil)
	b.tell(j)
	s := *b.fact("leaf-1", 2)
	if n := testing.AllocsPerRun(100, func() { j.Link(s); j.Before(s.At) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
