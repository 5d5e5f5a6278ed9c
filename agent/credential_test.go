package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/agent"
)

// TestCredentials checks that the configuration takes precedence over the unit's credentials.
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

// TestHostCredential: a host id comes from the configuration, else from a credential, and may hold the machine's
// serial number.
func TestHostCredential(t *testing.T) {
	for name, tt := range map[string]struct{ configured, host, serial, want string }{
		"configured":             {configured: "gpu-1", host: "gpu-2", want: "gpu-1"},
		"credential":             {host: "gpu-2\n", want: "gpu-2"},
		"none":                   {host: "none"},
		"nothing":                {},
		"serial":                 {configured: "{serial}", serial: "CZ1234\n", want: "CZ1234"},
		"serial in a name":       {configured: "gpu-{serial}", serial: " CZ1234 ", want: "gpu-CZ1234"},
		"serial in a credential": {host: "{serial}", serial: "CZ1234", want: "CZ1234"},
		"no serial":              {configured: "gpu-{serial}", serial: "none", want: "gpu-{serial}"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("CREDENTIALS_DIRECTORY", dir)
			for file, content := range map[string]string{"host": tt.host, "serial": tt.serial} {
				if content != "" {
					must(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o400))
				}
			}
			c := agent.DefaultConfig()
			c.Host = tt.configured
			c.UseCredentials()
			if c.Host != tt.want {
				t.Errorf("got %q, want %q", c.Host, tt.want)
			}
		})
	}
	c := agent.DefaultConfig()
	c.Host = "gpu-{serial}"
	if err := c.CheckHost(); err == nil || !strings.Contains(err.Error(), "serial number") {
		t.Errorf("a serial number that is not there: got %v", err)
	}
}
