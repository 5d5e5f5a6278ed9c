package config

import (
	"time"

	"portcullis/fabricsm/perfread"
	"portcullis/fabricsm/sm"
)

// Counters says how the counters of ports are read.
type Counters struct {
	Every time.Duration `yaml:"every"` // 0: never
	Rate  int           `yaml:"rate"`
}

func defaultCounters() Counters {
	return Counters{Every: perfread.DefaultEvery, Rate: perfread.DefaultRate}
}

func (c *Counters) check(k *checker, key string) {
	if c.Every != 0 {
		k.between(key+".every", c.Every, 5*time.Second, time.Hour)
	}
	within(k, key+".rate", c.Rate, 10, 50_000)
}

func (c *Counters) flags(f *smFlags, key string) {
	f.duration("counters-every", key+".every", &c.Every)
	number(f, "counters-rate", key+".rate", &c.Rate)
}

func (*Counters) apply(*sm.Config, func(string) string) error { return nil }
