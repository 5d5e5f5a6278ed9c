package main

import (
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// growthConfig bounds what may be found, and how fast behind one port.
type growthConfig struct {
	Ceiling int           `yaml:"ceiling"`
	Entry   int           `yaml:"entry"`
	Window  time.Duration `yaml:"window"`
	Cable   int           `yaml:"cable"`
	Hops    int           `yaml:"hops"`
}

func defaultGrowth() growthConfig { return growthConfig(sm.DefaultConfig().Growth) }

func (g *growthConfig) check(k *checker, key string) {
	within(k, key+".ceiling", g.Ceiling, 100, 1_000_000)
	within(k, key+".entry", g.Entry, 10, g.Ceiling)
	within(k, key+".cable", g.Cable, 10, g.Ceiling)
	within(k, key+".hops", g.Hops, 1, mad.MaxHops)
	k.between(key+".window", g.Window, time.Second, 24*time.Hour)
}

func (g *growthConfig) flags(*smFlags, string) {}

func (g *growthConfig) apply(to *sm.Config, _ func(string) string) error {
	to.Growth = sm.GrowthConfig(*g)
	return nil
}
