package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sm"
)

// TestGrowthSection: settings in the file reach the core, beside the defaults.
func TestGrowthSection(t *testing.T) {
	t.Parallel()
	c := coreOf(t, "fabric:\n  growth:\n    entry: 40000\n    window: 2m\n    cable: 300\n    hops: 12\n")
	want := sm.GrowthConfig{Ceiling: sm.DefaultConfig().Growth.Ceiling, Entry: 40000, Window: 2 * time.Minute, Cable: 300, Hops: 12}
	if d := cmp.Diff(want, c.Growth); d != "" {
		t.Errorf("growth (-want +got):\n%s", d)
	}
}
