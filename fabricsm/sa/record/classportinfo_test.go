package record_test

import (
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/record"
)

// TestClassPortInfo compares with the ClassPortInfo of OpenSM 3.3.23, bit by bit.
func TestClassPortInfo(t *testing.T) {
	const (
		opensmMask  = 0x2602
		opensmMask2 = 0xB5E8
		services    = 1 << 8 // records of multicast services
		ndr         = 1 << 17
	)
	all := record.ClassPortInfo(record.Capabilities{Subscriptions: true, Multicast: true, MultiPath: true, Aliases: true, RespTimeValue: 16})
	if all.CapabilityMask != opensmMask {
		t.Errorf("CapabilityMask %#x, OpenSM says %#x", all.CapabilityMask, opensmMask)
	}
	if want := uint32(opensmMask2&^services | ndr); all.CapabilityMask2 != want {
		t.Errorf("CapabilityMask2 %#x, want %#x", all.CapabilityMask2, want)
	}
	var theirs mad.MAD
	if err := mad.Encode(theirs.SAData(), &all); err != nil {
		t.Fatal(err)
	}
	none := record.ClassPortInfo(record.Capabilities{})
	if none.CapabilityMask != 0x2000 || none.CapabilityMask2 != 0x2A4C8 {
		t.Errorf("without anything: %#x %#x", none.CapabilityMask, none.CapabilityMask2)
	}
	if qos := record.ClassPortInfo(record.Capabilities{QoS: true}); qos.CapabilityMask2 != none.CapabilityMask2|2 {
		t.Errorf("with a policy: %#x", qos.CapabilityMask2)
	}
	if all.RedirectQP != 1 || all.RedirectQKey != mad.WellKnownQKey || all.RedirectLID != 0 || all.ClassVersion != 2 || all.RespTimeValue != 16 {
		t.Errorf("%+v", all)
	}
}
