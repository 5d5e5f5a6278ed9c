package sim_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// Trap 256 names the offender: its path, its request, and the key that it showed.
func TestTrap256(t *testing.T) {
	f := tree(t, sim.Options{})
	sm, rogue := station(t, f, "sm", true), station(t, f, "h1", false)
	forward(t, sm)
	setEnd := func(level uint8) {
		if status := portSet(t, sm, 0, func(pi *mad.PortInfo) {
			pi.MKey, pi.MKeyProtectBits = ib.NewMKey(rightKey), level
		}, 1); status != mad.StatusOK {
			t.Fatal(status)
		}
	}
	setEnd(2)
	rogue.Send(keyed(directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrPKeyTable, Mod: 0x10000}, 1), wrongKey))
	numbers, packets := traps(t, sm)
	if !slices.Equal(numbers, []mad.TrapNum{mad.TrapBadMKey}) {
		t.Fatalf("traps %v", numbers)
	}
	var n mad.Trap256
	if err := mad.Decode(packets[0].MAD.Data(), &n); err != nil {
		t.Fatal(err)
	}
	if n.Type != mad.NoticeSecurity || n.Method != mad.MethodSet || n.AttributeID != mad.AttrPKeyTable || n.AttributeModifier != 0x10000 ||
		n.MKey != ib.NewMKey(wrongKey) || !n.DRNotice || n.DRPathTruncated || n.DRHopCount != 1 || n.DRReturnPath[1] != 2 ||
		n.DrSLID != ib.PermissiveLID || n.LID != ib.PermissiveLID {
		t.Errorf("directed-route offender: %+v", n)
	}
	if packets[0].MAD.MKey() != (ib.MKey{}) {
		t.Error("the trap carries a key")
	}
	// A TrapRepress without the key is one more violation and ends nothing.
	packets[0].MAD.Respond(mad.StatusOK)
	sm.Send(packets[0])
	if got := f.PortInfo("leaf1", 0).MKeyViolations; got != 2 {
		t.Errorf("%d violations, want 2", got)
	}
	f.Advance(2 * time.Second)
	numbers, packets = traps(t, sm)
	if len(numbers) == 0 {
		t.Fatal("the trap was not repeated")
	}
	last := packets[len(packets)-1]
	if err := mad.Decode(last.MAD.Data(), &n); err != nil {
		t.Fatal(err)
	}
	if n.Method != mad.MethodTrapRepress || n.LID != f.PortInfo("sm", 1).LID || n.DRNotice {
		t.Errorf("LID-routed offender: %+v", n)
	}
	last.MAD.Respond(mad.StatusOK)
	sm.Send(keyed(last, rightKey))
	f.Advance(time.Hour)
	if numbers, _ := traps(t, sm); len(numbers) != 0 {
		t.Errorf("%d traps after TrapRepress", len(numbers))
	}
}

func TestLongPathsInTrap256AreTruncated(t *testing.T) {
	f := tree(t, sim.Options{})
	sm, rogue := station(t, f, "sm", true), station(t, f, "h1", false)
	forward(t, sm)
	if status := portSet(t, sm, 0, func(pi *mad.PortInfo) { pi.MKey = ib.NewMKey(rightKey) }, 1); status != mad.StatusOK {
		t.Fatal(status)
	}
	route := []ib.PortNum{1}
	for range 18 {
		route = append(route, 3, 1) // to the spine and back
	}
	rogue.Send(keyed(directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrPKeyTable}, route...), wrongKey))
	_, packets := traps(t, sm)
	var n mad.Trap256
	if err := mad.Decode(packets[0].MAD.Data(), &n); err != nil {
		t.Fatal(err)
	}
	if !n.DRPathTruncated || n.DRHopCount != 29 || n.DRReturnPath[1] != 2 || n.DRReturnPath[29] != 3 {
		t.Errorf("%+v", n)
	}
}
