package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pinnedKey = `keys:
- name: integrator
  key: |
    -----BEGIN PUBLIC KEY-----
    MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
    -----END PUBLIC KEY-----
`

func TestManifestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := Default()
	c.File = filepath.Join(dir, "portcullisd.yaml")
	if keys, err := loadManifestKeys(c); err != nil || len(keys.Keys()) != 0 {
		t.Fatalf("without a file: %v, %v", keys.Keys(), err)
	}
	c.Inventory.ManifestKeys = "manifests.yaml"
	if _, err := loadManifestKeys(c); err == nil || !strings.HasPrefix(err.Error(), "inventory.manifest_keys: ") {
		t.Errorf("a file that is not there: %v", err)
	}
	file := filepath.Join(dir, "manifests.yaml")
	for _, tt := range []struct{ name, text, want string }{
		{"a key", pinnedKey, ""},
		{"a key that cannot be read", strings.Replace(pinnedKey, "MCow", "NCow", 1), "key 1 (\"integrator\"): key: "},
		{"an unknown field", "kays: []\n", "kays"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := loadManifestKeys(c)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q in it", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil || len(keys.Keys()) != 1 || keys.Keys()[0].Name != "integrator" {
			t.Errorf("%s: %+v, %v", tt.name, keys.Keys(), err)
		}
	}
}
