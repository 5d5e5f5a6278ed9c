package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/forms"
)

// topologyConfig names the declared topology, and what follows from a difference.
type topologyConfig struct {
	File       string        `yaml:"file"`
	Mode       string        `yaml:"mode"`
	TwoPersons bool          `yaml:"two_persons"`
	Watch      time.Duration `yaml:"watch"`
	Allowance  int           `yaml:"allowance"`
}

func defaultTopology() topologyConfig {
	return topologyConfig{Mode: topospec.Observe.String(), TwoPersons: true, Watch: 5 * time.Minute, Allowance: 10}
}

func (t *topologyConfig) check(k *checker, key string) {
	k.oneOf(key+".mode", t.Mode, topospec.Observe.String(), topospec.Warn.String(), topospec.Enforce.String())
	if t.File == "" && t.Mode != topospec.Observe.String() {
		k.wrong(key+".mode", "%s: nothing is declared; name a file, or give the mode to: portcullis topospec activate", t.Mode)
	}
	if t.Watch != 0 {
		k.between(key+".watch", t.Watch, time.Second, 24*time.Hour)
	}
	within(k, key+".allowance", t.Allowance, 0, 1000)
}

func (t *topologyConfig) flags(f *smFlags, key string) {
	f.text("topology", key+".file", &t.File)
	f.text("topology-mode", key+".mode", &t.Mode)
}

func (t *topologyConfig) apply(to *sm.Config, path func(string) string) error {
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
	r, err := forms.Declared(name, data, forms.Sealed)
	if err != nil {
		return nil, err
	}
	return topospec.Compile(name, r)
}

// newTopology passes a Subnet Manager the topology of a configuration that was read again, if it differs. It returns the
// one that counts from now on. Where the Subnet Manager refuses the new one, that is the one of before, so that the next
// attachment begins with the last good one, and the next reload tries again.
func newTopology(ctx context.Context, k *marks, log *slog.Logger, was, now *sm.TopologyConfig) sm.TopologyConfig {
	same := was.Spec == nil && now.Spec == nil || was.Spec != nil && now.Spec != nil && was.Spec.Digest() == now.Spec.Digest()
	if same && was.Mode == now.Mode {
		return *now
	}
	ctx, cancel := context.WithTimeout(ctx, maxMarkWait)
	defer cancel()
	k.told.forget()
	// The second and third input are taken when the first was decided.
	for _, in := range []sm.Input{&sm.TopologySet{Spec: now.Spec, Mode: now.Mode, By: "configuration"}, &sm.Woken{}, &sm.Woken{}} {
		if err := k.give(ctx, in); err != nil {
			log.Warn("the subnet manager takes the declared topology when it attaches", "reason", err)
			return *now
		}
	}
	if why := k.told.refusal(); why != "" {
		log.Error("reload: the declared topology is refused; the one that was in force stays in force", "reason", why)
		return *was
	}
	return *now
}

// topologyTold is what the subnet manager said last of a declared topology that it was given.
type topologyTold struct {
	mu      sync.Mutex
	refused string
	inForce bool
}

func (t *topologyTold) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused, t.inForce = "", false
}

// event takes an event of the subnet manager. It does not block.
func (t *topologyTold) event(e sm.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case *declared.TopologyInForce:
		t.inForce = true
	case *declared.TopologyRefused:
		t.refused = e.Reason
	}
}

// refusal says why a topology was refused, "" if it was not. One that is in force in a
// milder mode than was asked for, until its guards allow more, is not refused.
func (t *topologyTold) refusal() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inForce {
		return ""
	}
	return t.refused
}
