//go:build vm

package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"portcullis/packaging/vm/kernel"
)

// RootSerial is the serial number of the drive with the root file system.
const RootSerial = "root"

// rootPackages are the Debian packages of the root file system, each with its reason. Their dependencies are included.
var rootPackages = map[string]string{
	"systemd":                "process 1, the journal, credentials",
	"systemd-sysv":           "poweroff and reboot",
	"udev":                   "device files and their owners",
	"dbus":                   "systemctl for units of others",
	"kmod":                   "modprobe",
	"iproute2":               "addresses and links",
	"rpm":                    "installs our rpm packages where no system with rpm can be had",
	"procps":                 "processes, for people who look into a machine",
	"selinux-policy-default": "the reference policy, which our labels are loaded beside",
	"policycoreutils":        "semodule and setfiles",
	"selinux-utils":          "getenforce and setenforce",
	"semodule-utils":         "semodule's tools",
	"infiniband-diags":       "unchanged tools, which judge the fabric",
	"opensm":                 "the other Subnet Manager",
	"rdma-core":              "the rules and units of adapters",
	"tpm2-tools":             "a second opinion on the TPM",
	"libtss2-tcti-device0":   "lets tpm2-tools speak to the kernel's TPM",
	"mstflint":               "the vendor's tools for adapters",
	"acl":                    "setfacl, by which rules share a device",
	"ca-certificates":        "roots for HTTPS",
	"openssl":                "a second opinion on certificates",
	"curl":                   "a client that is not ours",
}

// Root is the root file system of the machines with systemd.
type Root struct {
	Image string // ext4, read as the backing file of each machine's own disk
	Dir   string // the same as a directory
}

// DebianRoot returns a root file system with Debian's packages and the kernel's modules, but without ours. It is made
// once and kept in cache.
func DebianRoot(cache string, k kernel.Kernel) (string, error) {
	names := make([]string, 0, len(rootPackages))
	for name := range rootPackages {
		names = append(names, name)
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, ",") + k.Dir))
	dir := filepath.Join(cache, "root-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	work := dir + ".part"
	if err := os.RemoveAll(work); err != nil {
		return "", err
	}
	err := run("", "mmdebstrap", "--quiet", "--variant=minbase", "--include="+strings.Join(names, ","),
		`--aptopt=APT::Install-Recommends "false"`, "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*", release(), work)
	if err != nil {
		return "", fmt.Errorf("root file system: %w", err)
	}
	modules := filepath.Join(work, "usr/lib/modules", k.Release)
	if err := os.MkdirAll(filepath.Dir(modules), 0o755); err != nil {
		return "", err
	}
	if err := run("", "cp", "-a", k.Modules(), modules); err != nil {
		return "", err
	}
	// The machines have none of these, and they are most of the size.
	for _, unused := range []string{
		"drivers/gpu", "drivers/media", "drivers/scsi", "drivers/net/ethernet/intel",
		"drivers/net/ethernet/broadcom", "drivers/net/ethernet/chelsio", "sound", "drivers/net/wireless",
	} {
		if err := os.RemoveAll(filepath.Join(modules, "kernel", unused)); err != nil {
			return "", err
		}
	}
	if err := run("", "/sbin/depmod", "-b", filepath.Join(work, "usr"), k.Release); err != nil {
		return "", err
	}
	return dir, os.Rename(work, dir)
}

// release returns the name of Debian's release on this machine.
func release() string {
	text, err := os.ReadFile("/etc/os-release")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
				return name
			}
		}
	}
	return "stable"
}

// masked are units that the machines do not need, and which take longest under emulation.
var masked = []string{
	"serial-getty@ttyS0.service", "getty@tty1.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer",
	"e2scrub_reap.service", "e2scrub_all.timer", "fstrim.timer", "opensm.service", "systemd-networkd-wait-online.service",
	"systemd-timesyncd.service", "systemd-pstore.service", "systemd-logind.service", "systemd-network-generator.service",
	"systemd-random-seed.service", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service", "systemd-binfmt.service",
	"proc-sys-fs-binfmt_misc.automount", "dev-hugepages.mount", "dev-mqueue.mount", "sys-kernel-tracing.mount",
	"modprobe@dm_mod.service", "modprobe@drm.service", "modprobe@fuse.service", "modprobe@loop.service", "sys-fs-fuse-connections.mount",
}

// unplugged are subsystems whose devices udev does not look at when the system starts: terminals, memory, processors and what ACPI
// describes. They are most of the devices of an emulated machine, and no rule of ours is about them. Devices that appear later are
// looked at, of whatever subsystem they are.
var unplugged = []string{
	"acpi", "bdi", "clockevents", "cpu", "event_source", "machinecheck", "memory", "node", "platform", "pnp", "serio", "tty", "vc",
	"workqueue",
}

// coldplug is a part of the unit systemd-udev-trigger that leaves the subsystems of unplugged out.
func coldplug() string {
	var b strings.Builder
	b.WriteString("[Service]\nExecStart=\nExecStart=-udevadm trigger --type=devices --action=add --prioritized-subsystem=block,tpmrm,net")
	for _, name := range unplugged {
		b.WriteString(" --subsystem-nomatch=" + name)
	}
	return b.String() + "\n"
}

// suiteUnit runs the test program once the system is up. The init program that it starts powers off.
const suiteUnit = `[Unit]
Description=test program of the virtual machine
After=multi-user.target

[Service]
Type=exec
ExecStart=/` + InitFile + ` ` + RunSuite + `
StandardOutput=journal+console
TimeoutStopSec=5s

[Install]
WantedBy=graphical.target
`

// BuildRoot makes the image of a root file system with packages of ours installed. It is kept in cache under the digest of
// its inputs.
func BuildRoot(cache string, k kernel.Kernel, debs []string) (Root, error) {
	base, err := DebianRoot(cache, k)
	if err != nil {
		return Root{}, err
	}
	key := sha256.New()
	fmt.Fprint(key, base, masked, coldplug(), suiteUnit, "labelled")
	for _, deb := range debs {
		f, err := os.Open(deb)
		if err != nil {
			return Root{}, err
		}
		_, err = io.Copy(key, f)
		_ = f.Close()
		if err != nil {
			return Root{}, err
		}
	}
	dir := filepath.Join(cache, "system-"+hex.EncodeToString(key.Sum(nil)[:6]))
	r := Root{Image: dir + ".ext4", Dir: dir}
	now := time.Now()
	if err := os.Chtimes(r.Image, now, now); err == nil {
		return r, nil
	}
	if err := r.build(base, debs); err != nil {
		return Root{}, fmt.Errorf("root file system with our packages: %w", err)
	}
	return r, forget(cache)
}

// kept is how many root file systems with packages of ours stay in the cache. Each build of the packages makes one.
const kept = 3

// forget deletes those that were not used for longest.
func forget(cache string) error {
	images, err := filepath.Glob(filepath.Join(cache, "system-*.ext4"))
	if err != nil {
		return err
	}
	used := map[string]time.Time{}
	for _, image := range images {
		info, err := os.Stat(image)
		if err != nil {
			return err
		}
		used[image] = info.ModTime()
	}
	slices.SortFunc(images, func(a, b string) int { return used[b].Compare(used[a]) })
	for _, image := range images[min(len(images), kept):] {
		// The image, the directory, and the policies made for it.
		all, err := filepath.Glob(strings.TrimSuffix(image, ".ext4") + "*")
		if err != nil {
			return err
		}
		for _, one := range all {
			if err := os.RemoveAll(one); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r Root) build(base string, debs []string) error {
	if err := os.RemoveAll(r.Dir); err != nil {
		return err
	}
	if err := run("", "cp", "-a", "--reflink=auto", base, r.Dir); err != nil {
		return err
	}
	if len(debs) > 0 {
		if err := run("", "cp", append(slices.Clone(debs), filepath.Join(r.Dir, "root"))...); err != nil {
			return err
		}
		if err := r.chroot("dpkg -i /root/*.deb && rm /root/*.deb"); err != nil {
			return err
		}
	}
	files := map[string]string{
		"etc/machine-id":                   "0123456789abcdef0123456789abcdef\n",
		"etc/hostname":                     "vm\n",
		"etc/hosts":                        "127.0.0.1 localhost vm\n",
		"etc/fstab":                        "",
		"etc/systemd/system/suite.service": suiteUnit,
		"etc/systemd/system/systemd-udev-trigger.service.d/vm.conf": coldplug(),
		"etc/systemd/system.conf.d/vm.conf":                         "[Manager]\nShowStatus=no\nDefaultTimeoutStartSec=120s\n",
		"etc/systemd/journald.conf.d/vm.conf":                       "[Journal]\nStorage=volatile\n",
		"etc/systemd/network/10-vm.network":                         "[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n",
		"etc/modules-load.d/portcullis-vm.conf":                     "virtio_net\nvirtio_console\n",
		"etc/systemd/system.conf.d/quiet.conf":                      "[Manager]\nLogLevel=notice\n",
	}
	for name, text := range files {
		to := filepath.Join(r.Dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		append([]string{"mask", "--quiet"}, masked...),
		{"enable", "--quiet", "suite.service", "systemd-networkd.service"},
		{"set-default", "--quiet", "graphical.target"},
	} {
		if err := run("", "systemctl", append([]string{"--root=" + r.Dir}, args...)...); err != nil {
			return err
		}
	}
	// Without labels nothing would work on a machine that enforces SELinux. The others do not see them.
	if err := r.chroot("setfiles -F /etc/selinux/default/contexts/files/file_contexts /"); err != nil {
		return err
	}
	return Ext4(r.Image, r.Dir)
}

// chroot runs a command of the shell in the root file system. Its mounts end with it, also if it is killed.
func (r Root) chroot(command string) error {
	return run("", "unshare", "--mount", "/usr/sbin/chroot", r.Dir, "sh", "-c", "mount -t proc proc /proc && "+command)
}

// imageSize is the size of a root file system: enough for Debian's packages and for tests.
const imageSize = 1200 << 20

// Ext4 writes an ext4 file system with the content of a directory.
func Ext4(to, dir string) error {
	part := to + ".part"
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(part, imageSize); err != nil {
		return err
	}
	if err := run("", "/usr/sbin/mkfs.ext4", "-q", "-F", "-d", dir, "-E", "root_owner=0:0", "-O", "^has_journal", part); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// Overlay writes a disk that begins as the image base, and keeps in to the data that is written to it.
func Overlay(to, base string) error {
	return run("", "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, to)
}
