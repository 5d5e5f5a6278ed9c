package main

import (
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport/umad"
)

// classKeys says what becomes of the keys of classes. Where they come from is said
// by whoever opens the store.
func (c *keysConfig) classKeys() sm.ClassKeysConfig {
	return sm.ClassKeysConfig{
		CC:       classKey(c.CCKey, c.CCLease, c.CCProtect, c.CCOutstanding),
		VS:       classKey(c.VSKey, c.VSLease, c.VSProtect, c.VSOutstanding),
		N2N:      classKey(c.N2NKey, c.N2NLease, c.N2NProtect, c.N2NOutstanding),
		Rotation: keys.RotationConfig{Period: c.RotationPeriod, Grace: c.RotationGrace, Window: c.RotationWindow},
	}
}

func classKey(enable string, lease time.Duration, protect bool, outstanding int) sm.ClassKeyConfig {
	k := sm.ClassKeyConfig{Lease: uint16(lease / time.Second), Readable: !protect, Window: outstanding}
	switch enable {
	case keyEnable:
		k.Enable = sm.KeyEnabled
	case keyDisable:
		k.Enable = sm.KeyDisable
	}
	return k
}

// managesClassKeys reports that keys of a class are given out or taken back.
func (c *keysConfig) managesClassKeys() bool {
	k := c.classKeys()
	return k.On()
}

// keyAgents are the classes whose keys are given out, as the kernel has to know of
// them: their traps are ours to take.
func keyAgents(c *sm.ClassKeysConfig) []umad.Agent {
	var agents []umad.Agent
	for _, x := range []struct {
		class  mad.Class
		enable sm.KeyEnable
	}{
		{mad.ClassCongestionControl, c.CC.Enable}, {mad.ClassVendorVS, c.VS.Enable}, {mad.ClassVendorN2N, c.N2N.Enable},
	} {
		if k, ok := mad.LookupKeyClass(x.class); ok && x.enable != sm.KeyIgnore {
			agents = append(agents, umad.Agent{Class: k.Class, Version: k.Version, Methods: []mad.Method{mad.MethodTrap}})
		}
	}
	return agents
}
