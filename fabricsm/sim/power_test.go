package sim_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

func TestPower(t *testing.T) {
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", true)
	forward(t, s)
	host := station(t, f, "h1", false)
	s.Take(nil)
	for range 2 { // it is idempotent
		if err := f.PowerOff("h1"); err != nil {
			t.Fatal(err)
		}
	}
	if numbers, _ := traps(t, s); len(numbers) != 1 || numbers[0] != mad.TrapLinkStateChange {
		t.Errorf("traps %v", numbers)
	}
	if got := f.PortInfo("leaf1", 2).PortState; got != ib.PortDown {
		t.Errorf("the leaf's port is %v", got)
	}
	if ask(t, host, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo})) != nil {
		t.Error("a program at a host without power is answered")
	}
	if status := portSet(t, s, 2, func(pi *mad.PortInfo) { pi.PortPhysicalState = ib.PhysPolling }, 1); status != mad.StatusOK {
		t.Fatal(status)
	}
	if got := f.PortInfo("leaf1", 2).PortState; got != ib.PortDown {
		t.Errorf("the link trained with a host without power: %v", got)
	}
	for range 2 {
		if err := f.PowerOn("h1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.PortInfo("h1", 1); got.PortState != ib.PortInit || got.LID != 0 {
		t.Errorf("after power on: %v, LID %v", got.PortState, got.LID)
	}
	if ask(t, host, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1)) == nil {
		t.Error("the host does not reach its leaf")
	}
}

// Training of a link takes time, and a change in between ends it.
func TestTraining(t *testing.T) {
	type state struct {
		port ib.PortState
		phys ib.PhysState
	}
	var (
		polling  = state{ib.PortDown, ib.PhysPolling}
		training = state{ib.PortDown, ib.PhysCfgTraining}
		up       = state{ib.PortInit, ib.PhysLinkUp}
		disabled = state{ib.PortDown, ib.PhysDisabled}
	)
	const takes = 2 * time.Second
	for _, tt := range []struct {
		name      string
		do        func(t *testing.T, f *sim.Fabric, s *sim.Station) error
		soon      state // of the leaf's port, right then
		later     state
		muchLater state
	}{
		{name: "nothing happens", do: func(*testing.T, *sim.Fabric, *sim.Station) error { return nil }, soon: up, later: up, muchLater: up},
		{name: "bounce", do: func(_ *testing.T, f *sim.Fabric, _ *sim.Station) error { return f.Bounce("h1", 1) }, soon: training, later: training, muchLater: up},
		{name: "reboot", do: func(_ *testing.T, f *sim.Fabric, _ *sim.Station) error { return f.Reboot("h1") }, soon: training, later: training, muchLater: up},
		{name: "bounce and unlink", do: func(_ *testing.T, f *sim.Fabric, _ *sim.Station) error {
			if err := f.Bounce("h1", 1); err != nil {
				return err
			}
			return f.Unlink("h1", 1)
		}, soon: training, later: training, muchLater: polling},
		{name: "power off while training", do: func(_ *testing.T, f *sim.Fabric, _ *sim.Station) error {
			if err := f.Bounce("h1", 1); err != nil {
				return err
			}
			return f.PowerOff("h1")
		}, soon: training, later: training, muchLater: polling},
		{name: "disabled while training", do: func(t *testing.T, f *sim.Fabric, s *sim.Station) error {
			if err := f.Bounce("h1", 1); err != nil {
				return err
			}
			portSet(t, s, 2, func(pi *mad.PortInfo) { pi.PortPhysicalState = ib.PhysDisabled }, 1)
			return nil
		}, soon: disabled, later: disabled, muchLater: disabled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{Training: takes})
			s := station(t, f, "sm", false)
			if err := tt.do(t, f, s); err != nil {
				t.Fatal(err)
			}
			for _, check := range []struct {
				when time.Duration
				want state
			}{{0, tt.soon}, {takes - 1, tt.later}, {2, tt.muchLater}} {
				f.Advance(check.when)
				pi := f.PortInfo("leaf1", 2)
				if got := (state{pi.PortState, pi.PortPhysicalState}); got != check.want {
					t.Errorf("after %v: %v/%v, want %v/%v", f.Now(), got.port, got.phys, check.want.port, check.want.phys)
				}
			}
		})
	}
}
