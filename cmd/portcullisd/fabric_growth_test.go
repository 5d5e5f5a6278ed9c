package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sm"
)

// TestGrowthSection: what the file says reaches the core, beside the defaults.
func TestGrowthSection(t *testing.T) {
	file := t.TempDir() + "/portcullisd.yaml"
	write(t, file, "fabric:\n  growth:\n    entry: 40000\n    window: 2m\n")
	o, err := parseSM([]string{"--config", file, "--port", "sim:x"}, t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.config.Fabric.core(func(p string) string { return p })
	if err != nil {
		t.Fatal(err)
	}
	want := sm.GrowthConfig{Ceiling: sm.DefaultConfig().Growth.Ceiling, Entry: 40000, Window: 2 * time.Minute}
	if d := cmp.Diff(want, c.Growth); d != "" {
		t.Errorf("growth (-want +got):\n%s", d)
	}
}
