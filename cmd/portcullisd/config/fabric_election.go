package config

import (
	"slices"
	"strings"
	"time"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/smtrust"
)

// Election decides which of several subnet managers is master.
type Election struct {
	MasterPriority uint8          `yaml:"master_priority"`
	AllowedSMs     []sm.AllowedSM `yaml:"allowed_sms"`
	PollEvery      time.Duration  `yaml:"poll_every"`
	Misses         int            `yaml:"misses"`
	Patience       time.Duration  `yaml:"patience"`
}

func defaultElection() Election {
	d := sm.DefaultConfig().Election
	return Election{MasterPriority: 15, PollEvery: d.PollEvery, Misses: d.Misses, Patience: d.Patience}
}

// maxAllowedSMs bounds a list that is walked for each SMInfo.
const maxAllowedSMs = 64

func (e *Election) check(k *checker, key string) {
	within(k, key+".master_priority", e.MasterPriority, 0, 15)
	k.between(key+".poll_every", e.PollEvery, 10*time.Millisecond, time.Minute)
	within(k, key+".misses", e.Misses, 1, 100)
	k.between(key+".patience", e.Patience, 100*time.Millisecond, time.Hour)
	if len(e.AllowedSMs) > 1 && slices.Contains(e.AllowedSMs, sm.AllowedSM{}) {
		k.wrong(key+".allowed_sms", "none is beside others: it allows no other Subnet Manager, and is alone in the list")
	}
	if len(e.AllowedSMs) > maxAllowedSMs {
		k.wrong(key+".allowed_sms", "%d subnet managers: want at most %d", len(e.AllowedSMs), maxAllowedSMs)
	}
}

func (e *Election) flags(f *smFlags, key string) {
	number(f, "master-priority", key+".master_priority", &e.MasterPriority)
	f.duration("poll-every", key+".poll_every", &e.PollEvery)
	f.option[key+".allowed_sms"] = "allowed-sm"
	first := true // the option replaces the list of the file, and may be repeated
	f.Func("allowed-sm", "", func(s string) error {
		if first {
			e.AllowedSMs, first = nil, false
		}
		for one := range strings.SplitSeq(s, ",") {
			a, err := smtrust.Parse(one)
			if err != nil {
				return err
			}
			e.AllowedSMs = append(e.AllowedSMs, a)
		}
		return nil
	})
}

func (e *Election) apply(to *sm.Config, _ func(string) string) error {
	to.Election = sm.ElectionConfig{
		MasterPriority: e.MasterPriority, Allowed: e.AllowedSMs,
		PollEvery: e.PollEvery, Misses: e.Misses, Patience: e.Patience,
	}
	return nil
}
