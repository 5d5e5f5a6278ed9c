package config

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// Growth bounds what may be found, and how fast behind one port.
type Growth struct {
	Ceiling int           `yaml:"ceiling"`
	Entry   int           `yaml:"entry"`
	Window  time.Duration `yaml:"window"`
	Cable   int           `yaml:"cable"`
	Hops    int           `yaml:"hops"`
}

func defaultGrowth() Growth { return Growth(sm.DefaultConfig().Growth) }

func (g *Growth) check(k *checker, key string) {
	within(k, key+".ceiling", g.Ceiling, 100, 1_000_000)
	within(k, key+".entry", g.Entry, 10, g.Ceiling)
	within(k, key+".cable", g.Cable, 10, g.Ceiling)
	within(k, key+".hops", g.Hops, 1, mad.MaxHops)
	k.between(key+".window", g.Window, time.Second, 24*time.Hour)
}

func (g *Growth) flags(*smFlags, string) {}

func (g *Growth) apply(to *sm.Config, _ func(string) string) error {
	to.Growth = sm.GrowthConfig(*g)
	return nil
}
