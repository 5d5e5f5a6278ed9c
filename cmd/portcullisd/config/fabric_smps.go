package config

import (
	"time"

	"portcullis/fabricsm/sm"
)

// SMPs says how requests are sent to the devices of the fabric.
type SMPs struct {
	Window    int           `yaml:"window"`
	PerNode   int           `yaml:"per_node"`
	Tries     int           `yaml:"tries"`
	Late      time.Duration `yaml:"late"`
	RetryMin  time.Duration `yaml:"retry_min"`
	RetryMax  time.Duration `yaml:"retry_max"`
	TrapHold  time.Duration `yaml:"trap_hold"`
	ViewEvery time.Duration `yaml:"view_every"`
}

func defaultSMPs() SMPs {
	d := sm.DefaultConfig()
	return SMPs{
		Window: d.Window, PerNode: d.PerTarget, Tries: d.Tries, Late: d.Late,
		RetryMin: d.RetryMin, RetryMax: d.RetryMax, TrapHold: d.TrapHold, ViewEvery: d.ViewEvery,
	}
}

func (s *SMPs) check(k *checker, key string) {
	within(k, key+".window", s.Window, 1, 1024)
	within(k, key+".per_node", s.PerNode, 1, 256)
	within(k, key+".tries", s.Tries, 1, 16)
	k.between(key+".late", s.Late, time.Millisecond, time.Minute)
	k.between(key+".retry_min", s.RetryMin, 10*time.Millisecond, time.Hour)
	k.between(key+".retry_max", s.RetryMax, s.RetryMin, 24*time.Hour)
	k.between(key+".trap_hold", s.TrapHold, time.Millisecond, time.Minute)
	k.between(key+".view_every", s.ViewEvery, time.Millisecond, time.Minute)
}

func (s *SMPs) flags(f *smFlags, key string) {
	number(f, "window", key+".window", &s.Window)
	number(f, "tries", key+".tries", &s.Tries)
}

func (s *SMPs) apply(to *sm.Config, _ func(string) string) error {
	to.Window, to.PerTarget, to.Tries, to.Late = s.Window, s.PerNode, s.Tries, s.Late
	to.RetryMin, to.RetryMax, to.TrapHold, to.ViewEvery = s.RetryMin, s.RetryMax, s.TrapHold, s.ViewEvery
	return nil
}
