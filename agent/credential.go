package agent

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// caCredential is the credential of the unit that has the service's CA.
const caCredential = "ca"

// noCredential is what the unit hands over where there is no such file.
const noCredential = "none"

// standardCA is the file that the unit hands over as its credential.
const standardCA = "/etc/portcullis/ca.pem"

// hostCredential has this host's id, and serialCredential the machine's serial number, which only
// root can read from the kernel.
const (
	hostCredential   = "host"
	serialCredential = "serial"
)

// serialWord stands for the machine's serial number in a host id.
const serialWord = "{serial}"

// maxNameCredential bounds the credentials that a host id is made of.
const maxNameCredential = 256

// UseCredentials takes the settings that neither configuration nor flags name from the credentials of the unit
// (systemd.exec(5)), or from their sources: the service's CA, and this host's id.
func (c *Config) UseCredentials() {
	c.useCA(standardCA)
	c.useHost()
}

// useHost completes the host id from credentials. If a credential is missing, the id stays as it is, and CheckHost reports
// what is missing.
func (c *Config) useHost() {
	if c.Host == "" {
		c.Host = nameCredential(hostCredential)
	}
	if !strings.Contains(c.Host, serialWord) {
		return
	}
	if serial := nameCredential(serialCredential); serial != "" {
		c.Host = strings.ReplaceAll(c.Host, serialWord, serial)
	}
}

// nameCredential returns the first line of a credential, without spaces around it.
func nameCredential(name string) string {
	file := credential(name)
	if file == "" {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxNameCredential))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

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

// credential returns the path of a credential that was handed over, or "".
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
