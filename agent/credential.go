package agent

import (
	"os"
	"path/filepath"
)

// caCredential is the credential of the unit that has the service's CA.
const caCredential = "ca"

// noCredential is what the unit hands over where there is no such file.
const noCredential = "none"

// standardCA is the file that the unit hands over as its credential.
const standardCA = "/etc/portcullis/ca.pem"

// UseCredentials takes from the credentials of the unit (systemd.exec(5)), or from
// where they come from, what neither configuration nor flags say: the service's CA.
func (c *Config) UseCredentials() { c.useCA(standardCA) }

func (c *Config) useCA(standard string) {
	if c.CA != "" {
		return
	}
	if c.CA = credential(caCredential); c.CA != "" || os.Getenv("CREDENTIALS_DIRECTORY") != "" {
		return
	}
	if _, err := os.Stat(standard); err == nil {
		c.CA = standard
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
