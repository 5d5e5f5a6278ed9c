package portchange_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portchange"
)

// TestCompare checks what two PortInfo of a port say.
func TestCompare(t *testing.T) {
	up := func(s ib.PortState) mad.PortInfo {
		return mad.PortInfo{PortState: s, PortPhysicalState: ib.PhysLinkUp, PartitionEnforcementInbound: s == ib.PortActive}
	}
	down := mad.PortInfo{PortState: ib.PortDown, PortPhysicalState: ib.PhysPolling, PartitionEnforcementInbound: true}
	off := mad.PortInfo{PortState: ib.PortActive, PortPhysicalState: ib.PhysDisabled, PartitionEnforcementInbound: true}
	get := portchange.Known{Num: 1, WasRead: true, ByGet: true}
	switchGet := get
	switchGet.IsExternal = true
	set, first := get, get
	set.ByGet, first.WasRead = false, false
	port0 := portchange.Known{LID: 3, WasRead: true, ByGet: true}
	for _, tt := range []struct {
		name    string
		old, is mad.PortInfo
		known   portchange.Known
		want    portchange.Change
	}{
		{"the first answer, with a link", mad.PortInfo{}, up(ib.PortInit), first, portchange.Change{Link: portchange.Up}},
		{"the first answer, without a link", mad.PortInfo{}, down, first, portchange.Change{Link: portchange.Down}},
		{"a link that goes on", up(ib.PortInit), up(ib.PortArmed), get, portchange.Change{Link: portchange.Up}},
		{"a link that went", up(ib.PortActive), down, get, portchange.Change{Link: portchange.Down, HasFlapped: true}},
		{"a port that was disabled", up(ib.PortActive), off, get, portchange.Change{Link: portchange.Down, HasFlapped: true}},
		{"no link, as before", down, down, get, portchange.Change{Link: portchange.Down}},
		{"a link that a Set took down", up(ib.PortActive), down, set, portchange.Change{Link: portchange.Down}},
		{"a link that came back", up(ib.PortActive), up(ib.PortInit), get, portchange.Change{Link: portchange.Bounced, HasFlapped: true}},
		{"the same, in the answer to a Set", up(ib.PortArmed), up(ib.PortInit), set, portchange.Change{Link: portchange.Bounced}},
		{"a switch that rebooted", up(ib.PortActive), up(ib.PortInit), switchGet, portchange.Change{Link: portchange.Bounced, HasFlapped: true, LostBits: true}},
		{"port 0 without its LID", mad.PortInfo{LID: 3}, mad.PortInfo{}, port0, portchange.Change{LostLID: true}},
		{"port 0 with another LID", mad.PortInfo{LID: 3}, mad.PortInfo{LID: 4}, port0, portchange.Change{}},
		{"port 0 that never had its LID", mad.PortInfo{LID: 2}, mad.PortInfo{}, port0, portchange.Change{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := portchange.Compare(&tt.old, &tt.is, tt.known); got != tt.want {
				t.Errorf("it says %+v, want %+v", got, tt.want)
			}
		})
	}
}
