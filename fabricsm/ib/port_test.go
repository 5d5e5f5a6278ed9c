package ib

import (
	"fmt"
	"testing"
)

func TestParsePortNum(t *testing.T) {
	checkParse(t, ParsePortNum, []parseCase[PortNum]{
		{in: "0", want: 0},
		{in: "254", want: 254},
		{in: "0x10", want: 16},
		{in: "255", err: `port "255": value out of range`},
		{in: "256", err: `port "256": value out of range`},
		{in: "+1", err: `port "+1": want no sign, space or underscore`},
	})
}

func TestNames(t *testing.T) {
	tests := []struct {
		v    fmt.Stringer
		want string
	}{
		{NodeCA, "CA"},
		{NodeSwitch, "switch"},
		{NodeRouter, "router"},
		{NodeType(0), "NodeType(0)"},
		{PortNop, "Nop"},
		{PortActive, "Active"},
		{PortActiveDefer, "ActiveDefer"},
		{PortState(9), "PortState(9)"},
		{PhysLinkUp, "LinkUp"},
		{PhysTest, "PhyTest"},
		{PhysState(15), "PhysState(15)"},
		{SMMaster, "Master"},
		{SMState(4), "SMState(4)"},
		{MTU2048, "2048"},
		{MTU(0), "MTU(0)"},
		{MTU(6), "MTU(6)"},
		{VLCap(0), "VLCap(0)"},
		{VLCap(1), "VL0"},
		{VLCap(4), "VL0-7"},
		{VLCap(5), "VL0-14"},
		{Width4x, "4x"},
		{Width1x | Width2x, "1x|2x"},
		{LinkWidth(0), "none"},
		{LinkWidth(255), "1x|4x|8x|12x|2x|0xe0"},
		{SpeedSDR | SpeedQDR, "SDR|QDR"},
		{LinkSpeed(15), "SDR|DDR|QDR|0x08"},
		{SpeedEDR, "EDR"},
		{LinkSpeedExt(31), "FDR|EDR|HDR|NDR|0x10"},
		{TID(0x1234), "0x0000000000001234"},
	}
	for _, c := range tests {
		if got := c.v.String(); got != c.want {
			t.Errorf("%T: %q, want %q", c.v, got, c.want)
		}
	}
}
