package agent

import (
	"os"
	"path/filepath"
)

// caCredential is the credential of the unit that has the service's CA.
const caCredential = "ca"

// noCredential is what the unit hands over where there is no such file.
const noCredential = "none"

// UseCredentials takes from the credentials of the unit (systemd.exec(5)) what
// neither configuration nor flags say: the service's CA.
func (c *Config) UseCredentials() {
	if c.CA != "" {
		return
	}
	if name := credential(caCredential); name != "" {
		c.CA = name
	}
}

// credential gives the file of a credential that was handed over, or "".
func credential(name string) string {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return ""
	}
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.Size() == int64(len(noCredential)) {
		if b, err := os.ReadFile(path); err == nil && string(b) == noCredential {
			return ""
		}
	}
	return path
}
