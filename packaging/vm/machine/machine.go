//go:build vm

// Package machine starts virtual machines under qemu: emulated CPUs, UEFI
// firmware with or without Secure Boot, a software TPM, disks, networks and channels.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Firmware is what starts the machine.
type Firmware int

const (
	// Direct loads the kernel without firmware that measures: the quickest.
	Direct Firmware = iota
	// UEFI is OVMF without Secure Boot.
	UEFI
	// SecureBoot is OVMF that starts what the keys of its variables signed, and nothing else.
	SecureBoot
)

// Files of Debian's package ovmf.
const (
	codeUEFI       = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	codeSecureBoot = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
	// VariablesEmpty has no keys: Secure Boot is off.
	VariablesEmpty = "/usr/share/OVMF/OVMF_VARS_4M.fd"
	// VariablesSnakeoil trusts SnakeoilCert alone.
	VariablesSnakeoil = "/usr/share/OVMF/OVMF_VARS_4M.snakeoil.fd"
	// VariablesMicrosoft trusts Microsoft's keys, as machines are delivered, and so Debian's shim.
	VariablesMicrosoft = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"
	// SnakeoilCert and SnakeoilKey are the keys of VariablesSnakeoil.
	SnakeoilCert = "/usr/share/ovmf/PkKek-1-snakeoil.pem"
	SnakeoilKey  = "/usr/share/ovmf/PkKek-1-snakeoil.key"
	// SnakeoilPassphrase opens SnakeoilKey.
	SnakeoilPassphrase = "snakeoil"
)

// Drive is a virtio disk.
type Drive struct {
	File     string
	Format   string // raw if empty
	Serial   string // by which the init program finds it; at most 20 characters
	ReadOnly bool
}

// Spec is what a machine is made of.
type Spec struct {
	Name      string // of the machine in messages and in its folder
	Firmware  Firmware
	Variables string // file that the firmware's variables begin as; "" is VariablesEmpty, VariablesSnakeoil under SecureBoot
	// KeepVariables names a file that holds the variables from one boot to the next. "" means that each boot begins fresh.
	KeepVariables string
	Kernel        string // booted by the firmware, or by qemu under Direct; "" boots from disk
	Initrd        string
	Append        string // added to the kernel's command line
	Drives        []Drive
	TPM           *TPM
	Memory        int               // MiB; 1024 if 0
	Network       string            // qemu's user network: "" is none; options such as "restrict=off"
	BootFrom      string            // FromNetwork, or the serial of a drive: the source that firmware boots first; "" leaves that to its variables
	Channels      map[string]string // virtio-serial port to path of the unix socket that qemu listens on
	// Answers are the requests that tests in the machine may make (guest.Ask), and the actions outside. Systems with udev
	// have the channel for it.
	Answers   map[string]func() error
	Arguments []string      // further arguments of qemu
	Limit     time.Duration // to the end; 4 minutes if 0
	BootLimit time.Duration // to the begin of the test protocol; 100 seconds if 0, after which the boot is tried once more
}

// processor is qemu's least 64-bit model, as an early Atom of Intel. Linux knows that such a processor does not speculate, and
// switches no mitigation on: retpolines cost emulation dearly. It also takes the time from the processor's counter (TSC). Of AMD's
// processors, which qemu64 is one of otherwise, it does not trust that, and each look at the clock, of each program, is a trap into
// the emulated HPET.
const processor = "qemu64,vendor=GenuineIntel,family=6,model=28,stepping=10,rdrand=on"

// emulation has one thread run both CPUs of a machine in turns. A CPU that waits lets the other one run. Two machines
// with a thread for each CPU share this machine's two, and there they wait for CPUs that do not run: they take half as long again.
const emulation = "tcg,thread=single"

// FromNetwork has firmware boot the file that Network names with tftp and bootfile (PXE).
const FromNetwork = "network"

// bootIndex is the option of a device that firmware boots first.
func (s *Spec) bootIndex(name string) string {
	if s.BootFrom != "" && s.BootFrom == name {
		return ",bootindex=0"
	}
	return ""
}

// Machine is a running virtual machine.
type Machine struct {
	spec   Spec
	dir    string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	begun  time.Time
	took   time.Duration
	used   time.Duration // of processors

	answering sync.WaitGroup
}

// Cmdline is the command line of each kernel: warnings are printed, and a panic ends the machine.
const Cmdline = "console=ttyS0 loglevel=5 panic=-1"

// Start starts a machine, which ends with the test at the latest.
func Start(t testing.TB, spec Spec) *Machine {
	t.Helper()
	if spec.Memory == 0 {
		spec.Memory = 1024
	}
	if spec.Limit == 0 {
		spec.Limit = 4 * time.Minute
	}
	if spec.BootLimit == 0 {
		spec.BootLimit = 100 * time.Second
	}
	m := &Machine{spec: spec, dir: t.TempDir()}
	m.launch(t)
	t.Cleanup(m.Kill)
	return m
}

// launch starts qemu.
func (m *Machine) launch(t testing.TB) {
	t.Helper()
	args, err := m.arguments()
	if err != nil {
		t.Fatalf("machine %s: %v", m.spec.Name, err)
	}
	if m.spec.TPM != nil {
		m.spec.TPM.start(t)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), m.spec.Limit)
	m.cancel, m.done, m.begun = cancel, make(chan struct{}), time.Now()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("machine %s: start qemu: %v: run \"packaging/setup.sh vm\"", m.spec.Name, err)
	}
	if len(m.spec.Answers) > 0 {
		m.answering.Go(func() { m.answer(ctx) })
	}
	go func() {
		defer close(m.done)
		defer m.answering.Wait()
		defer cancel()
		err := cmd.Wait()
		m.took = time.Since(m.begun)
		m.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			m.err = fmt.Errorf("did not end within %v", m.spec.Limit)
		case err != nil:
			m.err = fmt.Errorf("qemu: %w: %s", err, said.String())
		}
	}()
}

func (m *Machine) arguments() ([]string, error) {
	s := m.spec
	chipset := "q35"
	if s.Firmware == SecureBoot {
		chipset += ",smm=on"
	}
	args := []string{
		"-M", chipset, "-cpu", processor, "-accel", emulation, "-smp", "2", "-m", fmt.Sprint(s.Memory),
		"-nodefaults", "-no-reboot", "-display", "none",
		"-chardev", "file,id=console,path=" + m.consoleFile(), "-serial", "chardev:console",
		"-chardev", "file,id=protocol,path=" + m.protocolFile(), "-serial", "chardev:protocol",
	}
	if s.Firmware != Direct {
		more, err := m.firmware()
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	}
	if s.Kernel != "" {
		args = append(args, "-kernel", s.Kernel, "-append", strings.TrimSpace(Cmdline+" "+s.Append))
		if s.Initrd != "" {
			args = append(args, "-initrd", s.Initrd)
		}
	}
	for i, d := range s.Drives {
		format := d.Format
		if format == "" {
			format = "raw"
		}
		drive := fmt.Sprintf("if=none,id=drive%d,format=%s,file=%s,cache=unsafe", i, format, d.File)
		if d.ReadOnly {
			drive += ",readonly=on"
		}
		args = append(args, "-drive", drive, "-device", fmt.Sprintf("virtio-blk-pci,drive=drive%d,serial=%s", i, d.Serial)+s.bootIndex(d.Serial))
	}
	if s.TPM != nil {
		args = append(args, "-chardev", "socket,id=tpm,path="+s.TPM.control(), "-tpmdev", "emulator,id=tpm0,chardev=tpm",
			"-device", "tpm-tis,tpmdev=tpm0")
	}
	if s.Network != "" {
		args = append(args, "-netdev", "user,id=net0,"+s.Network, "-device", "virtio-net-pci,netdev=net0,romfile="+s.bootIndex(FromNetwork))
	}
	channels := maps.Clone(s.Channels)
	if len(s.Answers) > 0 {
		if channels == nil {
			channels = map[string]string{}
		}
		channels[ControlPort] = m.controlSocket()
	}
	if len(channels) > 0 {
		args = append(args, "-device", "virtio-serial-pci")
	}
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		path := channels[name]
		args = append(args, "-chardev", "socket,id="+name+",path="+path+",server=on,wait=off",
			"-device", "virtserialport,chardev="+name+",name="+name)
	}
	return append(args, s.Arguments...), nil
}

func (m *Machine) firmware() ([]string, error) {
	code, from := codeUEFI, VariablesEmpty
	var args []string
	if m.spec.Firmware == SecureBoot {
		code, from = codeSecureBoot, VariablesSnakeoil
		args = append(args, "-global", "driver=cfi.pflash01,property=secure,value=on")
	}
	if m.spec.Variables != "" {
		from = m.spec.Variables
	}
	file := m.spec.KeepVariables
	if file == "" {
		file = filepath.Join(m.dir, "variables.fd")
	}
	if _, err := os.Stat(file); err != nil || m.spec.KeepVariables == "" {
		if err := copyFile(file, from); err != nil {
			return nil, fmt.Errorf("variables of the firmware: %w: run \"packaging/setup.sh vm\"", err)
		}
	}
	return append(args, "-drive", "if=pflash,format=raw,unit=0,readonly=on,file="+code,
		"-drive", "if=pflash,format=raw,unit=1,file="+file), nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (m *Machine) consoleFile() string  { return filepath.Join(m.dir, "console") }
func (m *Machine) protocolFile() string { return filepath.Join(m.dir, "protocol") }

// Console returns what firmware, boot loader and kernel wrote until now.
func (m *Machine) Console() string {
	b, _ := os.ReadFile(m.consoleFile())
	return Clean(b)
}

// ProtocolText returns what the machine wrote on its second serial port until now.
func (m *Machine) ProtocolText() string {
	b, _ := os.ReadFile(m.protocolFile())
	return Clean(b)
}

// File returns what a test in the machine handed out under a name. A file that is not there ends the test.
func (m *Machine) File(t testing.TB, name string) []byte {
	t.Helper()
	b, ok := ParseProtocol(m.ProtocolText()).Files[name]
	if !ok {
		t.Fatalf("machine %s handed out no file %s", m.spec.Name, name)
	}
	return b
}

// Kill ends the machine as a power cut does.
func (m *Machine) Kill() {
	m.cancel()
	<-m.done
	if m.spec.TPM != nil {
		m.spec.TPM.stop()
	}
}

// Until waits until the machine wrote text on its console or its second serial port.
func (m *Machine) Until(text string, limit time.Duration) error {
	deadline := time.After(limit)
	for {
		if strings.Contains(m.ProtocolText(), text) || strings.Contains(m.Console(), text) {
			return nil
		}
		select {
		case <-m.done:
			return fmt.Errorf("machine %s ended without saying %q: %w", m.spec.Name, text, m.err)
		case <-deadline:
			return fmt.Errorf("machine %s did not say %q within %v", m.spec.Name, text, limit)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Wait waits for the end of the machine, and returns how long it ran.
func (m *Machine) Wait() (time.Duration, error) {
	<-m.done
	if m.spec.TPM != nil {
		m.spec.TPM.stop()
	}
	return m.took, m.err
}
