package tpmtest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"

	"portcullis/attest/eventlog/eventlogtest"
)

// EventLogFile is where Linux shows the event log, below the mount point of
// sysfs.
const EventLogFile = "kernel/security/tpm0/binary_bios_measurements"

// Machine is what the host of the TPM boots. A change counts from the next
// power cycle on.
func (t *TPM) Machine() *eventlogtest.Machine { return &t.machine }

// EventLog is the log of the present boot, as the kernel shows it.
func (t *TPM) EventLog() []byte { return t.log }

// PlantEventLog writes the log to where the kernel shows it below a sysfs.
func (t *TPM) PlantEventLog(sysfs string) error {
	file := filepath.Join(sysfs, EventLogFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, t.log, 0o600)
}

// measureBoot extends what firmware and boot loader of the machine measure.
func (t *TPM) measureBoot() error {
	dev, err := linuxudstpm.Open(t.socket())
	if err != nil {
		return fmt.Errorf("software TPM %s: measured boot: %w", t.dir, err)
	}
	defer dev.Close()
	w := t.machine.Boot()
	for _, m := range w.Measured {
		cmd := tpm2.PCRExtend{
			PCRHandle: tpm2.AuthHandle{Handle: tpm2.TPMHandle(m.PCR), Auth: tpm2.PasswordAuth(nil)},
			Digests: tpm2.TPMLDigestValues{Digests: []tpm2.TPMTHA{
				{HashAlg: tpm2.TPMAlgSHA256, Digest: m.Digests[eventlogtest.SHA256]},
				{HashAlg: tpm2.TPMAlgSHA384, Digest: m.Digests[eventlogtest.SHA384]},
			}},
		}
		if _, err := cmd.Execute(dev); err != nil {
			return fmt.Errorf("software TPM %s: measured boot: extend PCR %d: %w", t.dir, m.PCR, err)
		}
	}
	t.log = w.Bytes()
	return nil
}
