package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSocketFlagComesBeforeTheFile checks that the flag takes precedence over the file.
func TestSocketFlagComesBeforeTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("{service: https://a, socket: s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		flags  connection
		env    map[string]string
		socket string
	}{
		{"file", connection{}, nil, filepath.Join(filepath.Dir(file), "s")},
		{"environment names a service", connection{}, map[string]string{EnvService: "https://b"}, ""},
		{"environment", connection{}, map[string]string{envSocket: "e"}, "e"},
		{"flag", connection{socket: "f"}, map[string]string{envSocket: "e"}, "f"},
		{"flag names a service", connection{service: "https://c"}, map[string]string{envSocket: "e"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(EnvService, tt.env[EnvService])
			t.Setenv(envSocket, tt.env[envSocket])
			c := tt.flags
			c.configFile = file
			if err := c.complete(); err != nil {
				t.Fatal(err)
			}
			if c.socket != tt.socket {
				t.Errorf("socket %q, want %q", c.socket, tt.socket)
			}
		})
	}
}
