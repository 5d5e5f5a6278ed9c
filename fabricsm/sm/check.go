package sm

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/sm/lids"
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
	c.Ports.Check(k.wrong)
	c.Health.Check(k.wrong)
	k.notNegative("time to recover", int64(c.Health.Recover))
	k.notNegative("longest time to recover", int64(c.Health.RecoverMax))
	c.Growth.Check(k.wrong)
	c.MKey.Check(k.wrong)
	c.ClassKeys.Check(k.wrong)
	k.counters(&c.Counters)
	c.Violations.Check(k.wrong)
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
