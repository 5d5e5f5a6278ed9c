package main

// roots are the Debian packages that something is picked from, each with its reason.
// Libraries come from packages that these depend on. The kernel's package is named by a flag.
var roots = map[string]string{
	"systemd":          "process 1, journal, network set-up, shutdown",
	"systemd-resolved": "names of the service, by the servers that DHCP names",
	"udev":             "device nodes with their owners, and kernel modules of the devices that are there",
	"kmod":             "loads kernel modules",
	"mstflint":         "reads the firmware of adapters where the kernel has no fwctl",
	"systemd-boot-efi": "the stub that firmware starts",
}

// picked are the files that are taken out of packages, each with the libraries it is linked with.
var picked = []struct {
	pkg      string
	patterns []string
}{
	{"systemd", []string{
		"lib/systemd/systemd", "lib/systemd/systemd-journald", "lib/systemd/systemd-networkd", "lib/systemd/systemd-networkd-wait-online",
		"lib/systemd/systemd-shutdown", "bin/systemd-tmpfiles",
		"lib/systemd/system/systemd-journald.service", "lib/systemd/system/systemd-journald*.socket",
		"lib/systemd/system/systemd-networkd.service", "lib/systemd/system/systemd-networkd.socket",
		"lib/systemd/system/systemd-networkd-wait-online.service",
		"lib/systemd/system/systemd-tmpfiles-setup.service",
		"lib/systemd/system/systemd-poweroff.service", "lib/systemd/system/systemd-reboot.service",
		"lib/systemd/system/modprobe@.service",
		"lib/systemd/system/sysinit.target", "lib/systemd/system/basic.target", "lib/systemd/system/multi-user.target",
		"lib/systemd/system/sockets.target", "lib/systemd/system/paths.target", "lib/systemd/system/timers.target",
		"lib/systemd/system/slices.target", "lib/systemd/system/local-fs.target", "lib/systemd/system/local-fs-pre.target",
		"lib/systemd/system/swap.target", "lib/systemd/system/network.target", "lib/systemd/system/network-pre.target",
		"lib/systemd/system/network-online.target", "lib/systemd/system/nss-lookup.target", "lib/systemd/system/time-set.target",
		"lib/systemd/system/shutdown.target", "lib/systemd/system/umount.target", "lib/systemd/system/final.target",
		"lib/systemd/system/poweroff.target", "lib/systemd/system/reboot.target",
		"lib/udev/rules.d/99-systemd.rules",
	}},
	{"systemd-resolved", []string{"lib/systemd/systemd-resolved", "lib/systemd/system/systemd-resolved.service"}},
	{"udev", []string{
		"bin/udevadm", "lib/systemd/systemd-udevd", "lib/systemd/network/99-default.link",
		"lib/systemd/system/systemd-udevd*.socket", "lib/systemd/system/systemd-udevd.service", "lib/systemd/system/systemd-udev-trigger.service",
		"lib/udev/rules.d/50-udev-default.rules", "lib/udev/rules.d/60-infiniband.rules", "lib/udev/rules.d/75-net-description.rules",
		"lib/udev/rules.d/80-drivers.rules", "lib/udev/rules.d/80-net-setup-link.rules",
	}},
	{"kmod", []string{"bin/kmod", "sbin/modprobe"}},
	{"mstflint", []string{"usr/bin/mstflint", "usr/bin/mstconfig", "usr/bin/mstreg"}},
	{"portcullis-agent", []string{
		"usr/bin/portcullis-agent", "usr/lib/systemd/system/portcullis-agent.service", "usr/lib/udev/rules.d/60-portcullis-agent.rules",
		"usr/lib/tmpfiles.d/portcullis-agent.conf",
	}},
}

// opened are libraries that programs open by name while they run, and whose absence is an error to them.
var opened = []string{
	"libnss_files.so.2", // only glibc before 2.34 has it apart
}

// modules are the kernel modules of the image, each with its reason; their dependencies are included.
var modules = map[string]string{
	"mlx5_core":   "ConnectX and BlueField, also as Ethernet of the provisioning network",
	"mlx5_ib":     "their InfiniBand side",
	"ib_umad":     "tries whether the host can send SMPs",
	"ib_uverbs":   "verbs, for firmware commands of older tools",
	"autofs4":     "systemd looks for it",
	"virtio_pci":  "devices of virtual machines",
	"virtio_net":  "network of virtual machines",
	"e1000e":      "network, Intel",
	"igb":         "network, Intel",
	"igc":         "network, Intel",
	"ixgbe":       "network, Intel",
	"i40e":        "network, Intel",
	"ice":         "network, Intel",
	"tg3":         "network, Broadcom",
	"bnxt_en":     "network, Broadcom",
	"efivarfs":    "variables of the firmware",
	"tpm_tis_spi": "TPMs behind a serial bus; the usual ones are built into the kernel",
}

// wished are modules that are taken where the kernel has them, and reported as missing where it has not.
var wished = map[string]string{
	"mlx5_fwctl": "firmware registers and locks of adapters, from Linux 6.15 on; without it mstflint reads them, as root and not under Secure Boot's lockdown, and no adapter can be locked",
}

// wants are the units that a target starts.
var wants = map[string][]string{
	"sysinit.target":        {"systemd-journald.service", "systemd-udevd.service", "systemd-udev-trigger.service", "systemd-tmpfiles-setup.service"},
	"sockets.target":        {"systemd-journald.socket", "systemd-journald-dev-log.socket", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket"},
	"network-online.target": {"systemd-networkd-wait-online.service"},
	"multi-user.target":     {"systemd-networkd.service", "systemd-resolved.service", "portcullis-agent.service"},
}

// fixed are directories that must be there, with their mode.
var fixed = map[string]uint32{
	"dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "tmp": 0o1777, "var/tmp": 0o1777, "var/lib": 0o755, "var/log": 0o755,
	"root": 0o700, "home": 0o755, "etc/portcullis": 0o755,
}

// texts are files of ours that are the same in every image.
var texts = map[string]string{
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
	"etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
	"etc/hostname":      "portcullis\n",
	"etc/fstab":         "",

	// Addresses by DHCP or router advertisements on every Ethernet port, as its hardware address asks for them:
	// this machine keeps nothing from boot to boot. A site's own files of networkd begin with a lower number.
	"usr/lib/systemd/network/90-provisioning.network": `[Match]
Type=ether
Kind=!*

[Network]
DHCP=yes
LLMNR=no
MulticastDNS=no

[DHCPv4]
ClientIdentifier=mac
UseHostname=no
UseDomains=yes

[DHCPv6]
DUIDType=link-layer
UseHostname=no
`,
	"usr/lib/systemd/system/systemd-networkd-wait-online.service.d/50-image.conf": `# One port with an address is enough, and the agent asks again by itself.
[Service]
ExecStart=
ExecStart=/usr/lib/systemd/systemd-networkd-wait-online --any --timeout=120
`,
	"usr/lib/systemd/resolved.conf.d/50-image.conf": "[Resolve]\nLLMNR=no\nMulticastDNS=no\nFallbackDNS=\n",
	"usr/lib/systemd/journald.conf.d/50-image.conf": "[Journal]\nStorage=volatile\nRuntimeMaxUse=32M\nAudit=no\n",
	"usr/lib/systemd/system.conf.d/50-image.conf":   "[Manager]\nStatusUnitFormat=name\nCtrlAltDelBurstAction=none\nDumpCore=no\nCrashShell=no\nLogLevel=notice\n",
}

// agentDropIn is added to the agent's unit, with the unit that follows on its failure. The agent's output, with the reason
// of a refusal, goes to the console. Each start of the agent, also a repeated one, is followed by the hand-over.
const agentDropIn = `[Unit]
Wants=%s
OnFailure=%s

[Service]
StandardOutput=journal+console
StandardError=journal+console
`
