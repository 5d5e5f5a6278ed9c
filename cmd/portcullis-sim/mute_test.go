package main

import (
	"strings"
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
)

// TestMuteSwitchFlags checks that the named switches are mute and no others. A name that is no switch is refused.
func TestMuteSwitchFlags(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		flags mutes
		want  string // of leaf1 and leaf2
		err   string
	}{
		{mutes{}, "false false", ""},
		{mutes{all: true}, "true true", ""},
		{mutes{nodes: []string{"leaf2"}}, "false true", ""},
		{mutes{nodes: []string{"h1"}}, "", "--mute-switch h1"},
		{mutes{nodes: []string{"leaf9"}}, "", "--mute-switch leaf9"},
	} {
		device := sim.Device{NoPKeyTraps: tt.flags.all}
		f := sim.NewWith(l, sim.Options{Device: device})
		err := tt.flags.apply(l, f, device)
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%+v: error %v, want %q", tt.flags, err, tt.err)
		}
		if err != nil {
			continue
		}
		var got []string
		for _, node := range []string{"leaf1", "leaf2"} {
			word := "true"
			if f.PortInfo(node, 0).CapabilityMask.Has(mad.IsPKeySwitchExternalPortTrapSupported) {
				word = "false"
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: mute %v, want %s", tt.flags, got, tt.want)
		}
	}
}
