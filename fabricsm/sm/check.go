package sm

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/lids"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/violation"
)

// Check finds every value of a configuration that makes no sense, so that none
// is met first when it is to be put into a MAD. Zero values are right: they mean
// the defaults.
func (c *Config) Check() error {
	var k configChecker
	k.atMost("priority", int(c.Priority), 15)
	k.atMost("LMC", int(c.LMC), lids.MaxLMC)
	k.notNegative("window", int64(c.Window))
	k.notNegative("requests per target", int64(c.PerTarget))
	k.notNegative("tries", int64(c.Tries))
	k.notNegative("late", int64(c.Late))
	k.notNegative("shortest retry", int64(c.RetryMin))
	k.notNegative("longest retry", int64(c.RetryMax))
	k.notNegative("trap hold", int64(c.TrapHold))
	k.notNegative("time between views", int64(c.ViewEvery))
	k.election(&c.Election)
	k.notNegative("wait for the intent", int64(c.IntentWait))
	if c.RetryMax != 0 && c.RetryMin > c.RetryMax {
		k.wrong("shortest retry %v: want at most the longest, %v", c.RetryMin, c.RetryMax)
	}
	if c.Enforcement > Accepted {
		k.wrong("enforcement %d: want verified or accepted", uint8(c.Enforcement))
	}
	if c.SLtoVL > SLtoVLOff {
		k.wrong("SL-to-VL mode %d: want auto or off", uint8(c.SLtoVL))
	}
	k.ports(&c.Ports)
	c.Health.Check(k.wrong)
	k.notNegative("time to recover", int64(c.Health.Recover))
	k.notNegative("longest time to recover", int64(c.Health.RecoverMax))
	k.growth(&c.Growth)
	c.MKey.Check(k.wrong)
	k.classKeys(&c.ClassKeys)
	k.counters(&c.Counters)
	k.violations(&c.Violations)
	return errors.Join(k.errs...)
}

type configChecker struct{ errs []error }

func (k *configChecker) wrong(format string, args ...any) {
	k.errs = append(k.errs, fmt.Errorf("configuration of the subnet manager: "+format, args...))
}

func (k *configChecker) atMost(what string, v, most int) {
	if v > most {
		k.wrong("%s %d: want 0 to %d", what, v, most)
	}
}

func (k *configChecker) notNegative(what string, v int64) {
	if v < 0 {
		k.wrong("%s is negative", what)
	}
}

// ports checks what goes into fields of PortInfo and SwitchInfo, by their widths
// (IBTA volume 1, 14.2.5.4 and 14.2.5.6).
func (k *configChecker) ports(p *portpolicy.Config) {
	const expTime = 31 // five bits
	k.atMost("largest MTU", int(p.MaxMTU), int(ib.MTU4096))
	k.atMost("most VLs", int(p.MaxOperationalVLs), 5)
	k.atMost("subnet timeout", int(p.SubnetTimeOut), expTime)
	k.atMost("packet lifetime", int(p.PacketLifetime), expTime)
	k.atMost("head-of-queue lifetime", int(p.HOQLife), expTime)
	k.atMost("head-of-queue lifetime towards hosts", int(p.LeafHOQLife), expTime)
	k.atMost("VL stall count", int(p.VLStallCount), 7)
	k.atMost("SL to the subnet manager", int(p.MasterSMSL), 15)
	k.atMost("threshold of local physical errors", int(p.LocalPhyErrors), 15)
	k.atMost("threshold of overrun errors", int(p.OverrunErrors), 15)
}

// violations checks the bounds of what violations and traps may cost.
func (k *configChecker) violations(v *violation.Config) {
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"rows of violations", int64(v.Rows)},
		{"rows of violations of one source", int64(v.RowsPerSource)},
		{"time between two events of a violation", int64(v.TellEvery)},
		{"checks of traps in a second", int64(v.ChecksPerSecond)},
		{"quiet time of violations", int64(v.Quiet)},
	} {
		k.notNegative(n.name, n.n)
	}
}
