package tpmtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"

	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/tpm"
)

// Options of Start.
type Options struct {
	Dir      string // for state, certificates and sockets; short, since socket paths end at 107 bytes
	CA       string // the vendor's folder, shared by the TPMs it made; when empty, Dir/ca, with this process's vendor
	Name     string // subject of the EK certificates; "host" when empty
	P256     bool   // also store an ECC P-256 EK certificate in the TPM, which swtpm_setup does not
	NoEKCert bool   // a TPM without EK certificates
	// Machine is what the TPM's host boots; nil: eventlogtest.Example.
	Machine *eventlogtest.Machine
}

// TPM is a running software TPM.
type TPM struct {
	dir, ca  string
	ekDigest string
	machine  eventlogtest.Machine
	log      []byte // of the present boot
	cmd      *exec.Cmd
	exited   chan struct{}
}

// tools are the programs Start runs.
var tools = []string{"swtpm", "swtpm_setup", "swtpm_localca", "swtpm_ioctl"}

// Missing returns an error that names what Start needs and the machine lacks, or nil.
func Missing() error {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed (Debian and Ubuntu packages: swtpm swtpm-tools): %w", tool, err)
		}
	}
	return nil
}

const startTimeout = 10 * time.Second

// Start makes a TPM in o.Dir, or starts again the one already there, and runs
// it until Stop is called or ctx ends.
func Start(ctx context.Context, o Options) (*TPM, error) {
	if err := Missing(); err != nil {
		return nil, fmt.Errorf("software TPM: %w", err)
	}
	t := &TPM{dir: o.Dir, ca: o.CA, machine: eventlogtest.Example()}
	if o.Machine != nil {
		t.machine = *o.Machine
	}
	if t.ca == "" {
		t.ca = filepath.Join(o.Dir, "ca")
	}
	fresh, err := t.manufacture(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("software TPM %s: %w", o.Dir, err)
	}
	if err := t.boot(ctx); err != nil {
		return nil, fmt.Errorf("software TPM %s: %w", o.Dir, err)
	}
	if fresh && o.P256 {
		err = t.certifyP256()
	}
	if err == nil {
		err = t.measureBoot()
	}
	if err == nil {
		err = t.readEK(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("software TPM %s: %w", o.Dir, err), t.Stop())
	}
	return t, nil
}

// boot starts the program and waits for its sockets.
func (t *TPM) boot(ctx context.Context) error {
	for _, path := range []string{t.socket(), t.control()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	t.cmd = exec.CommandContext(ctx, "swtpm", "socket", "--tpm2",
		"--tpmstate", "dir="+filepath.Join(t.dir, "state"),
		"--server", "type=unixio,path="+t.socket(),
		"--ctrl", "type=unixio,path="+t.control(),
		"--flags", "not-need-init,startup-clear",
		"--log", "file="+filepath.Join(t.dir, "swtpm.log")+",level=1")
	t.cmd.Cancel = func() error { return t.cmd.Process.Signal(syscall.SIGTERM) }
	t.cmd.WaitDelay = time.Second
	if err := t.cmd.Start(); err != nil {
		return err
	}
	t.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		// How it ended does not matter: Stop and ctx end it by a signal.
		_ = cmd.Wait()
		close(exited)
	}(t.cmd, t.exited)
	return t.awaitSockets(ctx)
}

func (t *TPM) awaitSockets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if accepts(t.socket()) && exists(t.control()) {
			return nil
		}
		select {
		case <-tick.C:
		case <-t.exited:
			return fmt.Errorf("swtpm ended at once, see %s", filepath.Join(t.dir, "swtpm.log"))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("swtpm opened no socket: %w", ctx.Err()), t.Stop())
		}
	}
}

// accepts reports whether a process listens; the file of a socket exists a moment earlier.
func accepts(path string) bool {
	c, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (t *TPM) readEK(ctx context.Context) error {
	dev, err := tpm.Open(ctx, t.Device())
	if err != nil {
		return err
	}
	defer dev.Close()
	keys, err := dev.NewKeys(ctx)
	if err != nil {
		return err
	}
	t.ekDigest = keys.EKDigest()
	return keys.Close(ctx)
}

func (t *TPM) socket() string  { return filepath.Join(t.dir, "tpm.sock") }
func (t *TPM) control() string { return t.socket() + ".ctrl" }

// Device is what the agent's --tpm takes.
func (t *TPM) Device() string { return "unix:" + t.socket() }

// EKDigest is how inventory names this TPM: the hex SHA-256 of the
// SubjectPublicKeyInfo of the EK the agent will use.
func (t *TPM) EKDigest() string { return t.ekDigest }

// PowerCycle resets the TPM as a power cycle of its host does: resetCount
// rises, the registers are zero, and the machine is booted, measured. No client
// may be connected.
func (t *TPM) PowerCycle(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "swtpm_ioctl", "--unix", t.control(), "-i").CombinedOutput()
	if err != nil {
		return fmt.Errorf("software TPM %s: power cycle: %w: %s", t.dir, err, out)
	}
	dev, err := linuxudstpm.Open(t.socket())
	if err != nil {
		return fmt.Errorf("software TPM %s: power cycle: %w", t.dir, err)
	}
	_, err = tpm2.Startup{StartupType: tpm2.TPMSUClear}.Execute(dev)
	dev.Close()
	if err != nil {
		return fmt.Errorf("software TPM %s: startup: %w", t.dir, err)
	}
	return t.measureBoot()
}

// Stop ends the program and waits for it. Its state stays in the folder.
func (t *TPM) Stop() error {
	select {
	case <-t.exited:
		return nil
	default:
	}
	if err := t.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("software TPM %s: stop: %w", t.dir, err)
	}
	select {
	case <-t.exited:
		return nil
	case <-time.After(startTimeout):
		return errors.Join(fmt.Errorf("software TPM %s: does not end", t.dir), t.cmd.Process.Kill())
	}
}
