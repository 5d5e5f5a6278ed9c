package agent

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"portcullis/attest"
)

// eventLogFile is where Linux shows the firmware's event log, below the mount
// point of sysfs.
const eventLogFile = "kernel/security/tpm0/binary_bios_measurements"

// eventLogCredential is the credential of the unit that has the log, which only
// root can read.
const eventLogCredential = "eventlog"

// noEventLog is what the unit hands over where the kernel shows no log.
const noEventLog = "none"

// eventLogPath is where the log is read: as configured, else the credential
// that systemd hands over, else where the kernel shows it.
func (c *Config) eventLogPath() string {
	if c.EventLog != "" {
		return c.EventLog
	}
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		if name := filepath.Join(dir, eventLogCredential); exists(name) {
			return name
		}
	}
	return filepath.Join(c.Sysfs, eventLogFile)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// eventLog reads the log of the measured boot, nil if this host shows none: then
// the service decides.
func (c *Config) eventLog() ([]byte, error) {
	const hint = "run as root, or have systemd hand it over: LoadCredential=" + eventLogCredential + ":/sys/" + eventLogFile
	name := c.eventLogPath()
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && c.EventLog == "" {
		return nil, nil
	}
	if err != nil {
		return nil, failf(ClassOther, hint, "event log: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, attest.MaxEventLog+1))
	if err != nil {
		return nil, failf(ClassOther, hint, "event log: %w", err)
	}
	if string(b) == noEventLog {
		return nil, nil
	}
	if len(b) > attest.MaxEventLog {
		return nil, failf(ClassOther, "inspect it with tpm2_eventlog: no boot measures so much", "event log %s has more than %d bytes", name, attest.MaxEventLog)
	}
	return b, nil
}

// eventLogDigest is how the statement names a log.
func eventLogDigest(log []byte) string {
	if len(log) == 0 {
		return ""
	}
	return hex.EncodeToString(attest.StatementDigest(log))
}
