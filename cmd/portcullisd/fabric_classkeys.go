package main

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport/umad"
)

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
