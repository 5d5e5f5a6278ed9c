package driver_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// left is a port as OpenSM and as we leave it.
type left struct {
	end            bool // a CA port or switch port 0
	towardsHost    bool // a switch port
	theirs, ours   *mad.PortInfo
	theirSM, ourSM ib.LID
}

// allowed says why a field may differ, and between which values.
type allowed struct {
	why   string
	where func(*left) bool
}

// differences are all fields that OpenSM and we leave different on a fabric that keeps written values.
var differences = map[string]allowed{
	"LID": {
		"both give the first free LIDs, in the order in which they find ports",
		func(p *left) bool { return p.end && p.theirs.LID.IsUnicast() && p.ours.LID.IsUnicast() },
	},
	"MasterSMLID": {
		"the LID of the Subnet Manager is one of those",
		func(p *left) bool {
			return p.end && p.theirs.MasterSMLID == p.theirSM && p.ours.MasterSMLID == p.ourSM
		},
	},
	"LinkWidthEnabled": {
		"OpenSM enables all that a host supports, we leave what is enabled (link_width: keep)",
		func(p *left) bool { return p.end && p.theirs.LinkWidthEnabled == p.ours.LinkWidthSupported },
	},
	"LinkSpeedExtEnabled": {
		"OpenSM enables all that a port supports, we leave what is enabled (link_speed: keep)",
		func(p *left) bool { return p.theirs.LinkSpeedExtEnabled == uint8(p.ours.LinkSpeedExtSupported) },
	},
	"FilterRawInbound": {
		"raw packets have no P_Key: we drop them at the ports of hosts",
		func(p *left) bool { return p.towardsHost && p.ours.FilterRawInbound },
	},
	"FilterRawOutbound": {
		"raw packets have no P_Key: we drop them at the ports of hosts",
		func(p *left) bool { return p.towardsHost && p.ours.FilterRawOutbound },
	},
}

// TestPortsAsOpenSMLeavesThem has the real OpenSM and ours bring up the same
// fabric, and compares PortInfo of every port, field by field.
func TestPortsAsOpenSMLeavesThem(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := sim.New(l), sim.New(l)
	opensm(t, theirs)
	port, err := ours.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Run(t.Context(), driver.Options{Port: port, Until: driver.UntilSettled}, nil); err != nil {
		t.Fatal(err)
	}
	used := map[string]int{}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		for num := range n.Ports {
			if num == 0 && n.Type != ib.NodeSwitch || num > 0 && n.Ports[num].Peer == "" {
				continue
			}
			a, b := theirs.PortInfo(n.Name, ib.PortNum(num)), ours.PortInfo(n.Name, ib.PortNum(num))
			p := &left{
				end: n.Type == ib.NodeCA || num == 0, theirs: &a, ours: &b,
				theirSM: theirs.PortInfo("sm", 1).LID, ourSM: ours.PortInfo("sm", 1).LID,
				towardsHost: n.Type == ib.NodeSwitch && num > 0 && l.Find(n.Ports[num].Peer).Type == ib.NodeCA,
			}
			compare(t, fmt.Sprintf("%s port %d", n.Name, num), p, used)
		}
	}
	for field, d := range differences {
		if used[field] == 0 {
			t.Errorf("%s does not differ anywhere, although %s", field, d.why)
		}
	}
	t.Logf("fields that differ, by ports: %v", used)
}

// compare reports fields that differ for no reason that is known.
func compare(t *testing.T, where string, p *left, used map[string]int) {
	t.Helper()
	a, b := reflect.ValueOf(*p.theirs), reflect.ValueOf(*p.ours)
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if !f.IsExported() || a.Field(i).Equal(b.Field(i)) {
			continue
		}
		if d, known := differences[f.Name]; known && d.where(p) {
			used[f.Name]++
			continue
		}
		t.Errorf("%s: %s is %v under OpenSM and %v under us", where, f.Name, a.Field(i), b.Field(i))
	}
}

// opensm has OpenSM bring up a fabric once, as it does by default.
func opensm(t *testing.T, f *sim.Fabric) {
	t.Helper()
	at, stop := simtest.ServeUntil(t, f)
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := at.OpenSM(ctx, "sm", at.Dir); err != nil {
		t.Fatal(err)
	}
}
