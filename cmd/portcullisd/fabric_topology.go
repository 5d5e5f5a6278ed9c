package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/topoconf"
)

// topologyConfig names the declared topology, and what follows from a difference.
type topologyConfig struct {
	File string `yaml:"file"`
	Mode string `yaml:"mode"`
}

func defaultTopology() topologyConfig { return topologyConfig{Mode: topospec.Observe.String()} }

func (t *topologyConfig) check(k *checker, key string) {
	k.oneOf(key+".mode", t.Mode, topospec.Observe.String(), topospec.Warn.String(), topospec.Enforce.String())
	if t.File == "" && t.Mode != topospec.Observe.String() {
		k.wrong(key+".mode", "%s: nothing is declared; name a file", t.Mode)
	}
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
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var r *topospec.Revision
	if start := bytes.TrimLeft(data[:min(64, len(data))], " \t\r\n"); bytes.HasPrefix(start, []byte("{")) || bytes.HasPrefix(start, []byte("format")) {
		r, err = native.Parse(name, data)
	} else {
		var f topoconf.File
		if f, err = topoconf.Parse(name, data); err == nil {
			r, err = f.Revision(name, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
		}
	}
	if err != nil {
		return nil, err
	}
	return topospec.Compile(name, r)
}

// newTopology gives a Subnet Manager the topology of a configuration that was read
// again, if it is another. What becomes of it is told by an event.
func newTopology(ctx context.Context, k *marks, log *slog.Logger, was, now *sm.TopologyConfig) {
	same := was.Spec == nil && now.Spec == nil || was.Spec != nil && now.Spec != nil && was.Spec.Digest() == now.Spec.Digest()
	if same && was.Mode == now.Mode {
		return
	}
	if err := k.give(ctx, &sm.TopologySet{Spec: now.Spec, Mode: now.Mode, By: "configuration"}); err != nil {
		log.Warn("the subnet manager takes the declared topology when it attaches", "reason", err)
	}
}
