package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Result is how a check of Doctor ended.
type Result string

// Results. Warning is what a run can do without, though the service may refuse
// the host for it; Skipped is what could not be looked at because of another
// check.
const (
	ResultOK      Result = "ok"
	ResultWarning Result = "warning"
	ResultFailed  Result = "failed"
	ResultSkipped Result = "skipped"
)

// Check is one thing that a provisioning run needs.
type Check struct {
	Name   string `json:"check"`
	Result Result `json:"result"`
	Detail string `json:"detail"`         // what was found
	Hint   string `json:"hint,omitempty"` // what to do
}

// Diagnosis is what Doctor found.
type Diagnosis struct {
	Ready  bool    `json:"ready"` // no check failed
	Checks []Check `json:"checks"`
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
	checks  []Check
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
	out := &Diagnosis{Ready: true, Checks: d.checks}
	for _, c := range d.checks {
		out.Ready = out.Ready && c.Result != ResultFailed
	}
	return out
}

func (d *doctor) tell(name string, r Result, hint, format string, args ...any) {
	d.checks = append(d.checks, Check{Name: name, Result: r, Detail: fmt.Sprintf(format, args...), Hint: hint})
}

func (d *doctor) ok(name, format string, args ...any) { d.tell(name, ResultOK, "", format, args...) }

func (d *doctor) warn(name, hint, format string, args ...any) {
	d.tell(name, ResultWarning, hint, format, args...)
}

func (d *doctor) failed(name string, err error) {
	c := Check{Name: name, Result: ResultFailed, Detail: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		c.Hint = e.Hint
	}
	d.checks = append(d.checks, c)
}

func (d *doctor) skip(because string, names ...string) {
	for _, name := range names {
		d.tell(name, ResultSkipped, "", "%s", because)
	}
}

// reader is a run that only looks.
func (d *doctor) reader() *run {
	return &run{
		config: d.config, version: d.version, log: slog.New(slog.DiscardHandler), notify: silent{},
		now: d.now, state: &stateDir{dir: d.config.StateDir},
	}
}
