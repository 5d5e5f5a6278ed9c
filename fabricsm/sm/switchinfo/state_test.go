package switchinfo_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/switchinfo"
	"portcullis/fabricsm/topo"
)

// TestReads checks when SwitchInfo is read, and which reads are part of the audit.
func TestReads(t *testing.T) {
	var s switchinfo.State
	if now, audit := s.Reads(); !now || audit {
		t.Error("a new switch is not read, or as part of the audit")
	}
	if n := s.Take(&mad.SwitchInfo{LinearFDBTop: 5, PortStateChange: true}, true); n != (switchinfo.News{IsFirst: true}) {
		t.Errorf("the first answer says %+v", n)
	}
	if now, _ := s.Reads(); now || !s.IsKnown() {
		t.Error("a switch that was read is read again")
	}
	s.Audit()
	if now, audit := s.Reads(); !now || !audit {
		t.Error("the audit does not read it")
	}
	s.Verify()
	if now, audit := s.Reads(); !now || audit {
		t.Error("a trap does not have it read")
	}
	if n := s.Take(&mad.SwitchInfo{LinearFDBTop: 4, PortStateChange: true}, true); n != (switchinfo.News{IsRebooted: true, HasChanged: true}) {
		t.Errorf("an answer with a smaller LinearFDBTop says %+v", n)
	}
	s.Recheck()
	if n := s.Take(&mad.SwitchInfo{}, false); n != (switchinfo.News{}) {
		t.Errorf("an answer to a Set says %+v", n)
	}
	if now, _ := s.Reads(); !now {
		t.Error("an answer to a Set ends the wish to read")
	}
	s.Start()
	if !s.IsReset() {
		t.Error("a switch whose LinearFDBTop is 0 has a configuration")
	}
	s.Reboot()
	s.Forget()
	if s.IsReset() || s.IsKnown() {
		t.Error("the switch is not forgotten")
	}
}

// TestClear checks that ports are read once, when PortStateChange is cleared.
func TestClear(t *testing.T) {
	var s switchinfo.State
	s.Take(&mad.SwitchInfo{PortStateChange: true}, true)
	if w := s.Want(switchinfo.Tables{}); w.PortStateChange || s.Differs(&w) {
		t.Error("PortStateChange is cleared without a reason")
	}
	s.Clear(true)
	if w := s.Want(switchinfo.Tables{}); !w.PortStateChange || !s.Differs(&w) || !s.Clears() {
		t.Error("PortStateChange is not cleared")
	}
	if !s.Cleared() || s.Cleared() || s.Clears() {
		t.Error("the ports are not read once")
	}
	s.Clear(false)
	if s.Cleared() {
		t.Error("ports are read that were read before")
	}
}

// TestWant checks what a switch is to have, and what is learned from its answers.
func TestWant(t *testing.T) {
	var s switchinfo.State
	s.Take(&mad.SwitchInfo{LinearFDBTop: 5, LifeTimeValue: 1, PartitionEnforcementCap: 8, MulticastFDBTop: 0xc000, EnhancedPort0: true}, true)
	tables := switchinfo.Tables{AreThere: true, Top: 9, LifeTime: 18}
	w := s.Want(tables)
	if w.LinearFDBTop != 9 || w.LifeTimeValue != 18 {
		t.Errorf("it is to have %+v", w)
	}
	if w := s.Want(switchinfo.Tables{Top: 9, LifeTime: 18}); w.LinearFDBTop != 5 || w.LifeTimeValue != 1 {
		t.Errorf("without tables it is to have %+v", w)
	}
	w.MulticastFDBTop = 0xc01f
	if s.MissedTop(tables) {
		t.Error("it lost what it was never given")
	}
	before := s.Want(switchinfo.Tables{Top: 9, LifeTime: 18})
	s.Ask(&before)
	s.LearnLifeTime(tables)
	if w := s.Want(tables); w.LifeTimeValue != 18 {
		t.Error("a lifetime that was not asked for counts as one that is not kept")
	}
	s.Ask(&w)
	s.LearnLifeTime(tables)
	if top, ports := s.MissedMulticast(); !top || ports || !s.MissedTop(tables) {
		t.Error("what it does not keep is not seen")
	}
	if w := s.Want(tables); w.LifeTimeValue != 1 {
		t.Error("a lifetime that is not kept is written again")
	}
	tn := topo.Node{GUID: 0x10, Type: ib.NodeSwitch}
	s.Copy(&tn)
	if tn.PartitionEnforcementCap != 8 || !tn.EnhancedPort0 || tn.GUID != 0x10 {
		t.Errorf("it is copied to %+v", tn)
	}
}
