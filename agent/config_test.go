package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent"
)

func TestParseConfig(t *testing.T) {
	t.Parallel()
	got := agent.DefaultConfig()
	must(t, got.ParseConfig("agent.yaml", []byte("service: https://s:8443\nca: /ca.pem\nhost: compute-01\ntimeout: 90s\n")))
	want := agent.DefaultConfig()
	want.Service, want.CA, want.Host, want.Timeout = "https://s:8443", "/ca.pem", "compute-01", 90*time.Second
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	must(t, got.Check())
	must(t, got.ParseConfig("empty.yaml", []byte("# nothing\n")))
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("after an empty file (-got +want):\n%s", diff)
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, yaml string
		want       []string
	}{
		{"unknown key", "service: https://s\nhots: compute-01\n", []string{"agent.yaml", "line 2", "hots"}},
		{"wrong type", "service: https://s\n\ntimeout: soon\n", []string{"line 3"}},
		{"two documents", "host: a\n---\nhost: b\n", []string{"agent.yaml"}},
		{"nothing set", "", []string{"service is not set", "ca is not set", "host is not set"}},
		{
			"several faults", "host: '../x'\nagent_pcr: 16\ntimeout: 0s\nchannel_binding: maybe\ntpm: ''\n",
			[]string{"host id", "agent_pcr 16", "timeout 0s", `channel_binding "maybe"`, "tpm is empty"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := agent.DefaultConfig()
			err := c.ParseConfig("agent.yaml", []byte(tc.yaml))
			if err == nil {
				err = c.Check()
			}
			if agent.ClassOf(err) != agent.ClassUsage {
				t.Fatalf("got %v, want class %d", err, agent.ClassUsage)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}
