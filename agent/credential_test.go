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
	file := filepath.Join(dir, "ca")
	ca := func(configured string) string {
		c := agent.DefaultConfig()
		c.CA = configured
		c.UseCredentials()
		return c.CA
	}
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
