package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport/umad"
)

// TestClassKeysConfig: the configuration of classes reaches the parts that issue keys, and the port that takes their traps.
func TestClassKeysConfig(t *testing.T) {
	t.Parallel()
	c := defaultKeys()
	c.Root, c.MKey = "root", keyIgnore
	c.CCKey, c.N2NKey, c.N2NLease, c.N2NOutstanding = keyEnable, keyDisable, 0, 7
	if !c.ManagesKeys() || c.ManagesMKeys() {
		t.Errorf("manages keys: %v, M_Keys: %v", c.ManagesKeys(), c.ManagesMKeys())
	}
	got := c.classKeys()
	want := sm.ClassKeysConfig{
		CC:       sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: 60, Window: 500},
		VS:       sm.ClassKeyConfig{Window: 500},
		N2N:      sm.ClassKeyConfig{Enable: sm.KeyDisable, Window: 7},
		Rotation: keys.RotationConfig{Period: 24 * time.Hour, Grace: time.Hour, Window: 16},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
	traps := []mad.Method{mad.MethodTrap}
	want2 := []umad.Agent{{Class: mad.ClassCongestionControl, Version: 2, Methods: traps}, {Class: mad.ClassVendorN2N, Version: 1, Methods: traps}}
	core := sm.Config{ClassKeys: got}
	if diff := cmp.Diff(want2, fabricport.Agents(&core)); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	core.Counters.Period = time.Minute
	if diff := cmp.Diff(append(want2, umad.Agent{Class: mad.ClassPerf, Version: 1}), fabricport.Agents(&core)); diff != "" {
		t.Errorf("agents with counters (-want +got):\n%s", diff)
	}
	d := defaultKeys()
	d.Root = "root"
	if k := d.classKeys(); k.On() {
		t.Error("by default keys of classes are given out")
	}
}
