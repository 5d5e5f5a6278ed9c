package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"portcullis/agent/checklist"
)

// Diagnosis is what Doctor found.
type Diagnosis struct {
	Ready  bool           `json:"ready"` // no check failed
	Checks checklist.List `json:"checks"`
}

// Names of checks. They are part of the contract with provisioning systems.
const (
	checkConfiguration = "configuration"
	checkImage         = "image"
	checkState         = "state"
	checkAgent         = "other-agent"
	checkTPM           = "tpm"
	checkPCR           = "agent-pcr"
	checkEventLog      = "event-log"
	checkFirmware      = "firmware"
	checkAdapters      = "adapters"
	checkRegisters     = "registers"
	checkFWCTL         = "fwctl"
	checkTools         = "vendor-tools"
	checkLockdown      = "lockdown"
	checkUMAD          = "umad"
	checkSELinux       = "selinux"
	checkService       = "service"
	checkTrust         = "service-certificate"
	checkReady         = "service-ready"
	checkClock         = "clock"
)

// doctor looks at one host.
type doctor struct {
	config  *Config
	version string
	now     func() time.Time
	infinib string // where the kernel has its device nodes for MADs
	root    string // of /etc and /boot
	checks  checklist.List
}

// Doctor looks whether a provisioning run has what it needs. It changes nothing:
// it measures nothing, writes to no disk or adapter and sends no credential. The
// keys that it has the TPM make are gone when it ends.
func Doctor(ctx context.Context, c *Config, version string) *Diagnosis {
	d := &doctor{config: c, version: version, now: time.Now, infinib: "/dev/infiniband", root: "/"}
	return d.diagnose(ctx)
}

func (d *doctor) diagnose(ctx context.Context) *Diagnosis {
	d.configuration()
	d.image()
	d.stateFolder()
	busy := d.otherAgent()
	log := d.eventLog()
	d.tpm(ctx, log, busy)
	d.adapters(ctx)
	d.ways(ctx)
	d.selinux()
	d.service(ctx)
	return &Diagnosis{Ready: d.checks.Failed() == nil, Checks: d.checks}
}

func (d *doctor) ok(name, format string, args ...any) {
	d.checks.Add(name, checklist.OK, "", format, args...)
}

func (d *doctor) warn(name, hint, format string, args ...any) {
	d.checks.Add(name, checklist.Warning, hint, format, args...)
}

func (d *doctor) failed(name string, err error) {
	hint := ""
	if e, ok := errors.AsType[*Error](err); ok {
		hint = e.Hint
	}
	d.checks.Add(name, checklist.Failed, hint, "%v", err)
}

func (d *doctor) skip(because string, names ...string) {
	for _, name := range names {
		d.checks.Add(name, checklist.Skipped, "", "%s", because)
	}
}

// reader is a run that only looks.
func (d *doctor) reader() *run {
	return &run{
		config: d.config, version: d.version, log: slog.New(slog.DiscardHandler), notify: silent{},
		now: d.now, state: &stateDir{dir: d.config.StateDir},
	}
}
