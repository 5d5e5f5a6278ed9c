//go:build vm

package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/attest/reference/predict"
	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/measured"
	"portcullis/packaging/vm/machine"
)

// host is a machine that is provisioned, from boot to boot: its disks, its TPM and the variables of its firmware stay.
type host struct {
	s    suite
	site *site
	spec machine.Spec
	dir  string
	made map[string]images // by command line
}

// booted is how a boot of a host ended.
type booted struct {
	console  string
	measured reference.Boot
}

// network lets the machine reach this one.
const network = "restrict=off"

// hostPCRs are those that a signed unified kernel image and its firmware measure into.
var hostPCRs = append(firmwarePCRs[:8:8], 9, 11)

// TestHost provisions a host and hands it to a tenant, who tries to return. All of it is real except the adapter and the
// fabric: Secure Boot, a signed kernel image, a TPM, systemd, our packages, the agent as its unit over the network.
func TestHost(t *testing.T) {
	lab(t, 250)
	h := newHost(t)
	const everywhere = "Units|SecureBoot|Devices|Log|Doctor"

	must(t, h.site.assign())
	first := h.boot(t, "first", everywhere+"|Refused", nil)
	h.site.refused(t, "reference", "no reference values")
	must(t, h.site.learn())

	second := h.boot(t, "second", everywhere+"|Admitted|LeaveBootOption", nil)
	sameBoots(t, []reference.Boot{first.measured, second.measured})

	h.spec.Drives[espDrive].File = h.esp(t, disk.OtherDiskID, h.image(t, machine.Cmdline+" tenant"))
	tenant := h.boot(t, "tenant's boot option and disk and image", "SecureBoot|Devices|Log|Tenant|RemoveBootOption|ClearTPM",
		map[string]func() error{"window": h.closed, "assign": h.again})
	if !strings.Contains(tenant.console, "Access Denied") {
		t.Errorf("the firmware does not say that it refused the unsigned image")
	}
	h.site.refused(t, "reference", "PCR 1", "PCR 5")
	// The option, that it was tried, the disk, and the image: Linux measures its command line into PCR 9.
	h.site.differing(t, "default/1", 1, 4, 5, 9, 11)
	for _, pcr := range []int{1, 4, 5} {
		h.alone(t, first, tenant, pcr)
	}
	if was, now := attempts(first), attempts(tenant); now != was+1 {
		t.Errorf("PCR 4 has %d boot attempts, and had %d without the tenant's option", now, was)
	}

	h.network(t)
	network := h.boot(t, "network", everywhere+"|Learned|Acknowledged|Admitted|Release",
		map[string]func() error{"learn": h.site.learn, "acknowledge": h.acknowledge, "release": h.site.release})
	h.predicted(t, first, network)
}

// attempts returns how many boot options the firmware measured that it tried.
func attempts(b booted) (n int) {
	for _, e := range b.measured.Log.Of(4) {
		if e.Type == eventlog.EFIAction && strings.HasPrefix(string(e.Data), "Calling EFI Application from Boot Option") {
			n++
		}
	}
	return n
}

func newHost(t *testing.T) *host {
	t.Helper()
	tpm := machine.NewTPM(t)
	dir := t.TempDir()
	adapter := filepath.Join(dir, adapterPort)
	h := &host{s: newSuite(t, "./inside/host"), site: newSite(t, tpm, adapter), dir: dir, made: map[string]images{}}
	h.spec = machine.Spec{
		// A second try would not be the same boot: the agent may have attested in the first.
		BootLimit: 3 * time.Minute, Limit: 5 * time.Minute,
		Firmware: machine.SecureBoot, KeepVariables: filepath.Join(dir, "variables"), TPM: tpm, Memory: 2048, Network: network,
		Channels: map[string]string{adapterPort: adapter},
		Drives: []machine.Drive{
			{File: h.esp(t, disk.DiskID, h.image(t, machine.Cmdline)), Serial: "esp"}, rootDrive(t), {Serial: disk.SeedSerial, ReadOnly: true},
		},
	}
	return h
}

// Drives of a host, in the order of newHost.
const (
	espDrive = iota
	_
	seedDriveAt
)

// esp writes a disk with a signed image, and a tenant's unsigned one beside it.
func (h *host) esp(t *testing.T, identifier string, image images) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "esp")
	must(t, disk.ESP(to, identifier, map[string]string{firstProgram: image.signed, "/EFI/tenant/tenant.efi": image.unsigned}))
	return to
}

// boot boots the host and runs tests in it, by the end of their names.
func (h *host) boot(t *testing.T, name, tests string, answers map[string]func() error) booted {
	t.Helper()
	seed, expected := h.s.seed(t, "^Test("+tests+")$")
	seedRemoteAdapter(t, seed)
	must(t, seed.File("/etc/portcullis/ca.pem", h.site.ca))
	seed.Data("/etc/portcullis/agent.yaml", fmt.Sprintf("service: %s\nhost: %s\nlock_adapters: false\nvendor_tools: false\ntimeout: 2m\n",
		strings.Replace(h.site.url, "127.0.0.1", gateway, 1), hostID), 0o644)
	seed.Data("/usr/lib/os-release", "ID=debian\nIMAGE_ID=provision\nIMAGE_VERSION=7\n", 0o644)
	seed.Link("/etc/systemd/system/multi-user.target.wants/portcullis-agent.service", "/usr/lib/systemd/system/portcullis-agent.service")
	seed.Link("/etc/systemd/system/systemd-networkd-wait-online.service", "/usr/lib/systemd/system/systemd-networkd-wait-online.service")
	spec := h.spec
	spec.Name, spec.Answers = name, answers
	spec.Drives[seedDriveAt] = seedDrive(t, seed)
	var b booted
	if !t.Run(name, func(t *testing.T) {
		m := machine.Run(t, spec, expected)
		raw := m.File(t, measured.LogName)
		log, err := eventlog.Parse(raw)
		must(t, err)
		toolAgrees(t, raw, log)
		b = booted{console: m.Console(), measured: quoted(log, hostPCRs)}
	}) {
		t.FailNow() // what follows builds on it
	}
	return b
}

// alone tests that the set learned first refuses a boot that differs from another, which it takes, in one register alone.
func (h *host) alone(t *testing.T, known, b booted, pcr int) {
	t.Helper()
	var shown v1.Reference
	must(t, json.Unmarshal([]byte(h.site.do("reference", "show", "default/1", "-o", "json")), &shown))
	set := reference.Set{Class: shown.Class, Version: shown.Version, State: reference.Approved, Registers: shown.Registers}
	judge := func(log *eventlog.Log) []reference.Difference {
		boot := reference.Boot{Log: log}
		for i, all := 0, log.Replay(); i < len(set.Registers); i++ {
			r := &set.Registers[i]
			q := eventlog.Quoted{PCR: r.PCR, Value: all[r.PCR]}
			if len(r.Values) > 0 { // the running system measured into it, too
				q.Value = r.Values[0]
			}
			boot.Quoted = append(boot.Quoted, q)
		}
		return set.Compare(&boot)
	}
	if diff := judge(known.measured.Log); len(diff) > 0 {
		t.Errorf("the set refuses the boot that it was learned from: %v", diff)
	}
	mixed := &eventlog.Log{Locality: known.measured.Log.Locality, Events: b.measured.Log.Of(pcr)}
	for _, e := range known.measured.Log.Events {
		if e.PCR != pcr {
			mixed.Events = append(mixed.Events, e)
		}
	}
	diff := judge(mixed)
	if len(diff) == 0 || slices.ContainsFunc(diff, func(d reference.Difference) bool { return d.PCR != pcr }) {
		t.Errorf("a boot that differs in PCR %d alone: differences %v, want some of that register", pcr, diff)
	}
}

// network has the firmware boot the provisioning image from the network, by PXE: qemu answers DHCP and TFTP.
func (h *host) network(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Link(h.image(t, machine.Cmdline).signed, filepath.Join(dir, "provision.efi")))
	h.spec.BootFrom, h.spec.Network = machine.FromNetwork, network+",tftp="+dir+",bootfile=provision.efi"
}

// predicted tests that the registers of a boot are those computed from the image's file and the log of another boot. Boot options
// and partitions, in PCR 1 and 5, are not the image's.
func (h *host) predicted(t *testing.T, known, b booted) {
	t.Helper()
	content, err := os.ReadFile(h.image(t, machine.Cmdline).signed)
	must(t, err)
	image, err := predict.Read(content)
	must(t, err)
	platform, err := predict.FromLogs(known.measured.Log)
	must(t, err)
	registers, err := image.Registers(platform, nil)
	must(t, err)
	compared := 0
	for _, q := range b.measured.Quoted {
		at := slices.IndexFunc(registers, func(r reference.Register) bool { return r.PCR == q.PCR })
		if q.PCR == 1 || q.PCR == 5 {
			continue
		}
		if at < 0 {
			t.Errorf("PCR %d is not predicted", q.PCR)
		} else if want := predict.Value(&registers[at]); q.Value != want {
			t.Errorf("PCR %d holds %v, predicted is %v", q.PCR, q.Value, want)
		}
		compared++
	}
	if compared != len(hostPCRs)-2 {
		t.Errorf("%d registers were compared, want %d", compared, len(hostPCRs)-2)
	}
}

// images are files of one unified kernel image.
type images struct{ unsigned, signed string }

// image makes the image of a command line.
func (h *host) image(t *testing.T, cmdline string) images {
	t.Helper()
	if i, ok := h.made[cmdline]; ok {
		return i
	}
	i := images{filepath.Join(h.dir, fmt.Sprintf("unsigned%d", len(h.made))), filepath.Join(h.dir, fmt.Sprintf("signed%d", len(h.made)))}
	must(t, disk.UKI(i.unsigned, debian(t), initramfs(t), cmdline, "1"))
	must(t, disk.Sign(i.signed, i.unsigned))
	h.made[cmdline] = i
	return i
}

// windowRefused matches the line of the service's log about a host that asked for a challenge outside its window. Its status
// keeps the refusal before that, of which the TPM proved more.
var windowRefused = regexp.MustCompile(`attestation refused.*window.*which closed its provisioning window`)

// closed tests that the tenant's evidence was refused since the host is his, and that he has kept it.
func (h *host) closed() error {
	if !windowRefused.MatchString(h.site.service.String()) {
		return errors.New("the service does not say that it refused the host for its window")
	}
	now, err := h.site.host()
	if err != nil {
		return err
	}
	if now.Status.Phase != v1.PhaseAdmitted {
		return fmt.Errorf("the tenant's host is %s, want it admitted as before", now.Status.Phase)
	}
	return nil
}

// again takes the host from the tenant and opens another window, while his system still runs.
func (h *host) again() error {
	if err := h.site.release(); err != nil {
		return err
	}
	return h.site.assign()
}

// acknowledge says that the TPM was cleared on purpose, once evidence was refused for it.
func (h *host) acknowledge() error {
	now, err := h.site.host()
	if err != nil {
		return err
	}
	if d := now.Status.LastDenial; d == nil || d.Code != "cleared" {
		return fmt.Errorf("the last refusal is %+v, want reason cleared", d)
	}
	_, err = h.site.try(h.site.operator, "host", "tpm-cleared", hostID, "--reason", "tenant left")
	return err
}
