package config

import (
	"fmt"
	"time"

	"portcullis/api/topology"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/format"
)

// Topology names the declared topology, and what follows from a difference.
type Topology struct {
	File       string        `yaml:"file"`
	Mode       string        `yaml:"mode"`
	TwoPersons bool          `yaml:"two_persons"`
	Watch      time.Duration `yaml:"watch"`
	Allowance  int           `yaml:"allowance"`
}

func defaultTopology() Topology {
	return Topology{Mode: topospec.Observe.String(), TwoPersons: true, Watch: 5 * time.Minute, Allowance: 10}
}

func (t *Topology) check(k *checker, key string) {
	k.oneOf(key+".mode", t.Mode, topospec.Observe.String(), topospec.Warn.String(), topospec.Enforce.String())
	if t.File == "" && t.Mode != topospec.Observe.String() {
		k.wrong(key+".mode", "%s: nothing is declared; name a file, or name the mode to: portcullis topospec activate", t.Mode)
	}
	if t.Watch != 0 {
		k.between(key+".watch", t.Watch, time.Second, 24*time.Hour)
	}
	within(k, key+".allowance", t.Allowance, 0, 1000)
}

func (t *Topology) flags(f *smFlags, key string) {
	f.text("topology", key+".file", &t.File)
	f.text("topology-mode", key+".mode", &t.Mode)
}

func (t *Topology) apply(to *sm.Config, path func(string) string) error {
	if t.File == "" {
		return nil
	}
	spec, err := readTopology(path(t.File))
	if err != nil {
		return fmt.Errorf("fabric.topology.file: %w", err)
	}
	to.Topology.Spec = spec
	return to.Topology.Mode.UnmarshalText([]byte(t.Mode))
}

// readTopology reads a native revision or a topoconfig.conf.
func readTopology(name string) (*topospec.Spec, error) {
	data, err := input.ReadFile(name, input.Large)
	if err != nil {
		return nil, err
	}
	r, err := format.Declared(name, data, format.Sealed)
	if err != nil {
		return nil, err
	}
	return topospec.Compile(name, r)
}

// Rules returns the section's settings for revisions.
func (t *Topology) Rules() topology.Rules {
	return topology.Rules{Alone: !t.TwoPersons, Watch: t.Watch, Allowance: topospec.Permille(t.Allowance)}
}
