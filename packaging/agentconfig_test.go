package packaging

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent"
)

// TestAgentConfigurationIsTheDefaults reads the packaged file with the agent's
// own parser: every key it shows is the built-in default, and all are shown.
func TestAgentConfigurationIsTheDefaults(t *testing.T) {
	const file = "etc/agent.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got agent.Config
	if err := got.ParseConfig(file, data); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(agent.DefaultConfig(), got); d != "" {
		t.Errorf("%s differs from the defaults (-default +file):\n%s", file, d)
	}
}
