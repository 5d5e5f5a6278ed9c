package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sm"
)

// TestGrowthSection: what the file says reaches the core, beside the defaults.
func TestGrowthSection(t *testing.T) {
	c := coreOf(t, "fabric:\n  growth:\n    entry: 40000\n    window: 2m\n")
	want := sm.GrowthConfig{Ceiling: sm.DefaultConfig().Growth.Ceiling, Entry: 40000, Window: 2 * time.Minute}
	if d := cmp.Diff(want, c.Growth); d != "" {
		t.Errorf("growth (-want +got):\n%s", d)
	}
}
