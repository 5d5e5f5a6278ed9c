package config

import (
	"time"

	"portcullis/api/fabric"
	"portcullis/fabricsm/sm"
)

// Sight says when the subnet manager is partly blind.
type Sight struct {
	Nodes  int           `yaml:"nodes"`
	Share  float64       `yaml:"share"`
	Within time.Duration `yaml:"within"`
}

func defaultSight() Sight { return Sight(fabric.DefaultSightLimits()) }

func (s *Sight) check(k *checker, key string) {
	within(k, key+".nodes", s.Nodes, 1, 1_000_000)
	k.share(key+".share", s.Share)
	k.between(key+".within", s.Within, 10*time.Second, time.Hour)
}

func (s *Sight) flags(*smFlags, string) {}

func (s *Sight) apply(*sm.Config, func(string) string) error { return nil }

// share checks a share of something.
func (k *checker) share(key string, v float64) {
	if !(v > 0 && v <= 1) {
		k.wrong(key, "%v: want more than 0 and at most 1", v)
	}
}
