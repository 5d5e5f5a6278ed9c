package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"portcullis/attest/eventlog"
)

// stateRoom is how many bytes the state folder should have free: every file of
// it twice, since files are replaced and not changed.
const stateRoom = 8 << 20

func (d *doctor) configuration() {
	if err := d.config.Check(); err != nil {
		d.failed(checkConfiguration, err)
		return
	}
	d.ok(checkConfiguration, "host %s, service %s", d.config.Host, d.config.Service)
}

func (d *doctor) image() {
	image, err := d.config.image()
	switch {
	case err != nil:
		d.failed(checkImage, err)
	case image == "":
		d.warn(checkImage, "set IMAGE_ID and IMAGE_VERSION in "+d.config.OSRelease+", or image in the configuration",
			"the image this host was booted from is not known; the statement will not name it either")
	default:
		d.ok(checkImage, "%s", image)
	}
}

func (d *doctor) stateFolder() {
	const hint = "make the folder writable, or name another with --state-dir"
	dir, err := existing(d.config.StateDir)
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, dir, unix.R_OK|unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	}
	if err != nil {
		d.failed(checkState, failf(ClassOther, hint, "state folder %s: %w", d.config.StateDir, err))
		return
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		d.failed(checkState, failf(ClassOther, hint, "state folder %s: %w", d.config.StateDir, err))
		return
	}
	if err := room(&s); err != nil {
		d.failed(checkState, failf(ClassOther, "make room on the disk, or name another folder with --state-dir", "state folder %s: %w", d.config.StateDir, err))
		return
	}
	d.ok(checkState, "%s is writable, %d MiB free", d.config.StateDir, free(&s)>>20)
}

// existing returns the folder itself, or the existing folder in which it would be created.
func existing(dir string) (string, error) {
	for {
		info, err := os.Stat(dir)
		switch up := filepath.Dir(dir); {
		case err == nil && !info.IsDir():
			return "", unix.ENOTDIR
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist) || up == dir:
			return "", reasonOf(err)
		default:
			dir = up
		}
	}
}

func free(s *unix.Statfs_t) uint64 { return s.Bavail * uint64(s.Bsize) }

// room reports a disk that is full; one without a number of files has no limit of
// them.
func room(s *unix.Statfs_t) error {
	switch {
	case free(s) < stateRoom:
		return fmt.Errorf("%d bytes are free, want %d", free(s), stateRoom)
	case s.Files > 0 && s.Ffree == 0:
		return errors.New("the disk has no room for another file")
	}
	return nil
}

// reasonOf drops the path that the error carries.
func reasonOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// otherAgent looks whether another agent has the state folder, without taking it:
// an agent that is just being started must not find it taken.
func (d *doctor) otherAgent() (busy bool) {
	f, err := os.Open(filepath.Join(d.config.StateDir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		d.ok(checkAgent, "no agent ever ran with this state folder")
		return false
	}
	pid := ""
	if err == nil {
		defer f.Close()
		pid, err = lockedBy(f)
	}
	switch {
	case err != nil:
		d.warn(checkAgent, "run as root", "cannot find out whether another agent runs: %v", err)
	case pid != "":
		d.failed(checkAgent, failf(ClassOther, "wait for it to end", "process %s, another portcullis-agent, uses %s", pid, d.config.StateDir))
		return true
	default:
		d.ok(checkAgent, "no other agent runs")
	}
	return false
}

// lockedBy returns the process that holds a lock (flock) on a file, or "". The kernel lists locks by device and inode. The
// device is that of the mount, which on some file systems differs from the device that stat reports.
func lockedBy(f *os.File) (string, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return "", err
	}
	ino, err := inode(f, string(info))
	if err != nil {
		return "", err
	}
	device, err := mountDevice(string(mounts), field(string(info), "mnt_id:"))
	if err != nil {
		return "", err
	}
	return holder(string(locks), device, ino)
}

// inode returns the kernel's inode number of the file. Before Linux 5.14 only stat reports it.
func inode(f *os.File, info string) (string, error) {
	if ino := field(info, "ino:"); ino != "" {
		return ino, nil
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return "", err
	}
	return strconv.FormatUint(s.Ino, 10), nil
}

// field returns the word after a name, at the beginning of a line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return f[1]
		}
	}
	return ""
}

// mountDevice finds MAJOR:MINOR, in decimal, of a mount (proc_pid_mountinfo(5)).
func mountDevice(mounts, id string) (string, error) {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == id {
			return f[2], nil
		}
	}
	return "", fmt.Errorf("the kernel does not report mount %q", id)
}

// holder finds the process that has locked a file (proc_locks(5)): "1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF",
// major and minor in hexadecimal.
func holder(locks, device, ino string) (string, error) {
	var major, minor uint32
	if _, err := fmt.Sscanf(device, "%d:%d", &major, &minor); err != nil {
		return "", fmt.Errorf("device of the mount %q: %w", device, err)
	}
	file := fmt.Sprintf("%02x:%02x:%s", major, minor, ino)
	for line := range strings.Lines(locks) {
		if f := strings.Fields(line); len(f) == 8 && f[1] == "FLOCK" && f[5] == file {
			return f[4], nil
		}
	}
	return "", nil
}

// eventLog looks at the firmware's log; nil if there is none that can be used.
func (d *doctor) eventLog() *eventlog.Log {
	const noLog = "have the firmware measure the boot: it must start through UEFI, with its TPM on"
	b, err := d.config.eventLog()
	if err != nil {
		d.failed(checkEventLog, err)
		return nil
	}
	if len(b) == 0 {
		d.warn(checkEventLog, noLog, "the kernel shows no event log of the firmware; the service will probably not trust this boot")
		return nil
	}
	log, err := eventlog.Parse(b)
	if err != nil {
		d.failed(checkEventLog, failf(ClassOther, "update the host's firmware; tpm2_eventlog shows what it wrote", "the service will refuse it: %w", err))
		return nil
	}
	return log // reported after the comparison with the TPM
}
