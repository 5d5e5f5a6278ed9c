package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"portcullis/agent"
)

// TestCredentials: the configuration counts more than what the unit hands over.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	file, standard := filepath.Join(dir, "ca"), filepath.Join(t.TempDir(), "ca.pem")
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	ca := func(configured string) string {
		c := agent.DefaultConfig()
		c.CA = configured
		agent.UseCA(&c, standard)
		return c.CA
	}
	if got := ca(""); got != "" {
		t.Errorf("with nothing anywhere: %q", got)
	}
	must(t, os.WriteFile(standard, []byte("-----BEGIN CERTIFICATE-----"), 0o400))
	if got := ca(""); got != standard {
		t.Errorf("by hand: %q, want %q", got, standard)
	}
	must(t, os.Remove(standard))
	if got := ca(""); got != "" {
		t.Errorf("without credentials: %q", got)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	if got := ca(""); got != "" {
		t.Errorf("without this credential: %q", got)
	}
	must(t, os.WriteFile(file, []byte("none"), 0o400))
	if got := ca(""); got != "" {
		t.Errorf("with none: %q", got)
	}
	must(t, os.Remove(file))
	must(t, os.WriteFile(file, []byte("-----BEGIN CERTIFICATE-----"), 0o400))
	if got := ca(""); got != file {
		t.Errorf("got %q, want %q", got, file)
	}
	if got := ca("/etc/other.pem"); got != "/etc/other.pem" {
		t.Errorf("got %q, want what is configured", got)
	}
}
