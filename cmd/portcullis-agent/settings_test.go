package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"portcullis/agent"
)

// TestStandardConfiguration: it is read where no other is named, and may be missing.
func TestStandardConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	standard, other := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "other.yaml")
	for file, host := range map[string]string{standard: "compute-01", other: "compute-02"} {
		if err := os.WriteFile(file, []byte("host: "+host+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		standard, want string
		args           []string
	}{
		{filepath.Join(dir, "gone.yaml"), "", nil},
		{standard, "compute-01", nil},
		{standard, "compute-02", []string{"--config", other}},
		{standard, "", []string{"--config", ""}},
		{standard, "compute-03", []string{"--host", "compute-03"}},
	} {
		s := settings{flags: agent.DefaultConfig(), standard: tt.standard}
		c := &cobra.Command{}
		s.hostFlags(c.Flags())
		if err := c.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		got, err := s.config(c)
		if err != nil || got.Host != tt.want {
			t.Errorf("%s %q: host %q, %v; want %q", tt.standard, tt.args, got.Host, err, tt.want)
		}
	}
}
