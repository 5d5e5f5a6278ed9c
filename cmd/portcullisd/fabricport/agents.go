package fabricport

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport/umad"
)

// Agents are the classes of general management that a subnet manager talks in, as the
// kernel has to know of them: those whose keys are given out, with the traps, which are
// ours to take, and that of counters, in which it only asks.
func Agents(c *sm.Config) []umad.Agent {
	agents := keyAgents(&c.ClassKeys)
	if c.Counters != (sm.CountersConfig{}) {
		agents = append(agents, Performance())
	}
	return agents
}

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

// Performance is the class of performance management, of one who only asks.
func Performance() umad.Agent { return umad.Agent{Class: mad.ClassPerf, Version: 1} }
