//go:build vm

// Command init is the first process of the virtual machines. It loads the modules that
// drives need, unpacks the seed over the root directory, and then either runs the test
// program from the initramfs, or starts the system on the drive with serial "root".
// There a unit runs this program again, as "init suite", or as "init suite-and-stay".
//
// Around what the test program writes on the second serial port it writes the first and
// last line of the test protocol.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/machine"
)

// protocolPort is the serial port of the test protocol.
const protocolPort = "/dev/ttyS1"

func main() {
	if len(os.Args) > 1 && (os.Args[1] == disk.RunSuite || os.Args[1] == disk.RunSuiteAndStay) {
		if err := runSuite(); err != nil {
			fmt.Fprintf(os.Stderr, "init: %v\n", err)
		}
		if os.Args[1] == disk.RunSuite {
			powerOff()
		}
		return
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "init: not process 1: use \"init suite\" to run the test program")
		os.Exit(2)
	}
	if err := boot(); err != nil {
		fmt.Fprintf(os.Stderr, "init: %v\n", err)
	}
	powerOff()
}

// boot returns only after the test program ended, or with an error.
func boot() error {
	if err := mounts(""); err != nil {
		return err
	}
	if err := loadEarly(); err != nil {
		return err
	}
	// Every machine has a seed; when its drive is there, the others are too.
	if _, err := drive(disk.SeedSerial, seedLimit); err != nil {
		return err
	}
	root, err := drive(disk.RootSerial, 300*time.Millisecond)
	if err != nil {
		return err
	}
	if root == "" {
		if err := unpackSeed("/"); err != nil {
			return err
		}
		if err := volatileMounts(); err != nil {
			return err
		}
		return runSuite()
	}
	return switchRoot(root)
}

// runSuite runs the test program and writes the test protocol.
func runSuite() error {
	port, err := os.OpenFile(protocolPort, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(port, "\n%s\n", machine.MarkBegin) // firmware may have left a line without end
	exit := suite(port)
	fmt.Fprintf(port, "\n%s\n", machine.End(exit, taint()))
	_ = unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1) // waits until the port has sent all
	return port.Close()
}

// suite runs the test program and returns its exit status.
func suite(port *os.File) int {
	text, err := os.ReadFile("/" + disk.ArgumentsFile)
	if err != nil {
		fmt.Fprintln(port, err)
		return -1
	}
	cmd := exec.Command("/"+disk.SuiteFile, strings.Fields(string(text))...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = port, port, "/suite"
	cmd.Env = append(os.Environ(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/tmp",
		"PORTCULLIS_REAL_PARTS=required")
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(port, err)
		return -1
	}
	return 0
}

func taint() uint64 {
	text, err := os.ReadFile("/proc/sys/kernel/tainted")
	if err != nil {
		return ^uint64(0)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return ^uint64(0)
	}
	return n
}

func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// Only process 1 and root get here.
	time.Sleep(time.Minute)
	os.Exit(1)
}
