package config

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

func TestHealthRuleText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want HealthRule
		fail string // part of the error
	}{
		{"12 in 1m isolate", HealthRule{12, time.Minute, health.Isolate}, ""},
		{"  3 in  10s   report ", HealthRule{3, 10 * time.Second, health.Report}, ""},
		{"ignore", HealthRule{1, time.Second, health.Ignore}, ""},
		{"", HealthRule{}, "want COUNT in TIME ACTION"},
		{"twelve in 1m isolate", HealthRule{}, "want COUNT in TIME ACTION"},
		{"0 in 1m isolate", HealthRule{}, "want COUNT in TIME ACTION"},
		{"12 in -1m isolate", HealthRule{}, "want COUNT in TIME ACTION"},
		{"12 within 1m isolate", HealthRule{}, "want COUNT in TIME ACTION"},
		{"12 in 1m explode", HealthRule{}, `action "explode"`},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			var r HealthRule
			err := r.UnmarshalText([]byte(tt.text))
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Errorf("error %v, want %q", err, tt.fail)
				}
				return
			}
			if err != nil || r != tt.want {
				t.Fatalf("rule %v, %v; want %v", r, err, tt.want)
			}
			text, _ := r.MarshalText()
			var back HealthRule
			if err := back.UnmarshalText(text); err != nil || back != r {
				t.Errorf("written as %q and read back as %v, %v", text, back, err)
			}
		})
	}
}

// TestHealthSection: settings in the file reach the core, and nonsense is reported with its line.
func TestHealthSection(t *testing.T) {
	t.Parallel()
	c := coreOf(t, "fabric:\n  health:\n    flapping: 7 in 2m disable\n    noisy: ignore\n    recover: 5m\n")
	if want := (health.Rule{Count: 7, Window: 2 * time.Minute, Action: health.Disable}); c.Health.Flapping != want || c.Health.Noisy.Action != health.Ignore || c.Health.Recover != 5*time.Minute {
		t.Errorf("health %+v", c.Health)
	}
	file := t.TempDir() + "/portcullisd.yaml"
	write(t, file, "fabric:\n  health:\n    marked: report\n    recover: 0s\n")
	if _, err := ParseSM([]string{"--config", file, "--port", "sim:x"}, t.Output(), t.Output()); err == nil || !strings.Contains(err.Error(), "fabric.health.marked") || !strings.Contains(err.Error(), "fabric.health.recover") {
		t.Errorf("error %v, want both keys", err)
	}
}

// coreOf returns the configuration of a Subnet Manager core that a configuration file sets.
func coreOf(t *testing.T, text string) sm.Config {
	t.Helper()
	file := t.TempDir() + "/portcullisd.yaml"
	write(t, file, text)
	o, err := ParseSM([]string{"--config", file, "--port", "sim:x"}, t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.Config.Fabric.Core(func(p string) string { return p })
	if err != nil {
		t.Fatal(err)
	}
	return c
}
