package hca_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portcullis/agent/hca"
	"portcullis/agent/hca/devlink"
	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/hcasim/cardsocket"
	"portcullis/agent/hca/register"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

// serve serves a card at the socket of its node GUID, and returns the folder of the sockets.
func serve(t *testing.T, c *hcasim.Card, node ib.GUID) (fwctl string) {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	l, err := cardsocket.Listen(ctx, filepath.Join(dir, node.String()))
	must(t, err)
	done := make(chan struct{})
	go func() { defer close(done); _ = cardsocket.Serve(ctx, l, c) }()
	t.Cleanup(func() { cancel(); <-done })
	return "unix:" + dir
}

// readCard reads the host of the recorded tree, whose mlx5_0 is a card.
func readCard(t *testing.T, c *hcasim.Card) *hca.Device {
	t.Helper()
	sysfs, _ := plant(t, "two-adapters.txtar")
	h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, FWCTL: serve(t, c, guid)})
	if err != nil || len(h.Problems) > 0 {
		t.Fatalf("got %+v, %v", h, err)
	}
	return h.Devices[slices.IndexFunc(h.Devices, func(d *hca.Device) bool { return d.Name == "mlx5_0" })]
}

func newCard(t *testing.T, change ...func(*hcasim.Options)) *hcasim.Card {
	t.Helper()
	o := hcasim.ConnectX7(guid, guid, guid)
	for _, f := range change {
		f(&o)
	}
	return hcasim.New(o)
}

// TestCard reads a simulated adapter: as it comes out of its box it is at G1, and
// as it should not be it is not.
func TestCard(t *testing.T) {
	t.Parallel()
	d := readCard(t, newCard(t))
	s := goodSite()
	s.image.SecurityVersion = uint32(value(t, &d.SecurityVersion))
	if v := d.Judge(s); v.Assurance != attest.G1 || !v.Compliant(attest.G1) {
		t.Fatalf("a good card: %v, %v", v.Assurance, all(v))
	}
	if value(t, &d.Ports[0].HasSMI) != attest.Yes || value(t, &d.MLOCK) != register.Unlocked {
		t.Error("a new card keeps its host from subnet management, or is locked")
	}
	for name, tt := range map[string]struct {
		alter func(*hcasim.Card)
		want  string
	}{
		"locked by somebody": {func(c *hcasim.Card) { c.LockAs(register.Locked, ib.NewLockKey(7)) }, "unknown-locked alternate_guid"},
		"silent":             {func(c *hcasim.Card) { c.Inject(hcasim.Fault{Kind: hcasim.Timeout}) }, "unknown-timeout life_cycle"},
		"answers too short":  {func(c *hcasim.Card) { c.Inject(hcasim.Fault{Kind: hcasim.WrongLength}) }, "unknown-unreadable life_cycle"},
		"refuses to tell its fuses": {func(c *hcasim.Card) {
			c.Inject(hcasim.Fault{Kind: hcasim.Refusal, ID: register.IDMFSV, Method: register.Read, Status: register.InternalError})
		}, "unknown-refused rollback_floor"},
		"lies about its version": {func(c *hcasim.Card) {
			c.Inject(hcasim.Fault{Kind: hcasim.Lying, ID: register.IDMGIR, Method: register.Read, Lie: func(b []byte) { b[0x20+0x2F]++ }})
		}, "unknown-disagree running"},
	} {
		c := newCard(t)
		tt.alter(c)
		if v := readCard(t, c).Judge(s); v.Compliant(attest.G0) || !slices.Contains(all(v), tt.want) {
			t.Errorf("%s: %v, %v, want %q", name, v.Assurance, all(v), tt.want)
		}
	}
}

// TestCardAlternateGUID: another GUID that root wrote shows before the reset that
// brings it into force.
func TestCardAlternateGUID(t *testing.T) {
	t.Parallel()
	c := newCard(t)
	item := nvconfig.Item{
		Header: nvconfig.Header{Address: nvconfig.FunctionItem(0, 0, 273), OverrideEnabled: true, ReadEnabled: true},
		Data:   []byte{0x80, 0, 0, 0, 0xb8, 0x3f, 0xd2, 3, 0, 0, 0xee, 0},
	}
	in := register.Access{ID: register.IDMNVDA, Method: register.Write, Data: item.Append(nil)}
	reply, err := c.RPC(register.RPC{Scope: register.Configuration, In: in.Encode(), Room: register.HeaderSize + len(in.Data)})
	must(t, err)
	answer, err := register.DecodeAnswer(reply.Out)
	must(t, err)
	must(t, answer.Err("write"))
	if v := readCard(t, c).Judge(goodSite()); !slices.Contains(all(v), "alternate-guid alternate_guid") {
		t.Errorf("before the reset: %v", all(v))
	}
	c.Reset()
	if v := readCard(t, c).Judge(goodSite()); !slices.Contains(all(v), "alternate-guid alternate_guid") {
		t.Errorf("after the reset: %v", all(v))
	}
}

// TestCardGone: no socket, no facts, and a reason.
func TestCardGone(t *testing.T) {
	t.Parallel()
	sysfs, _ := plant(t, "two-adapters.txtar")
	h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, FWCTL: "unix:" + t.TempDir()})
	must(t, err)
	if reason, detail := h.Devices[0].LifeCycle.Why(); reason != hca.ReasonNoAccess {
		t.Errorf("got %s, %s", reason, detail)
	}
}

func value[T comparable](t *testing.T, f *hca.Fact[T]) T {
	t.Helper()
	v, ok := f.Value()
	if !ok {
		reason, detail := f.Why()
		t.Fatalf("not known: %s, %s", reason, detail)
	}
	return v
}

// tools makes a folder with tools: mstflint prints a query, and mstreg a register
// by its number.
func tools(t *testing.T, query string, registers map[register.ID]string) string {
	t.Helper()
	dir := t.TempDir()
	script := func(name, body string) {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o755))
	}
	script("mstflint", "[ \"$1\" = --version ] && { echo 'mstflint, mstflint 4.36.0, x'; exit; }\n"+query)
	if registers != nil {
		cases := ""
		for id, dump := range registers {
			cases += fmt.Sprintf("0x%x) printf '%s';;\n", uint16(id), dump)
		}
		script("mstreg", "case $4 in\n"+cases+"*) echo '-E- Failed to send access register: Register not supported'; exit 1;; esac\n")
	}
	return dir
}

// pciHost is a host with one NVIDIA function, and a kernel without fwctl.
func pciHost(t *testing.T) string {
	t.Helper()
	sysfs, _ := plant(t, "two-adapters.txtar")
	must(t, os.RemoveAll(sysfs+"/class/infiniband/qib0"))
	must(t, os.RemoveAll(sysfs+"/class/infiniband/mlx5_1"))
	at := sysfs + "/devices/pci0000:00/0000:17:00.0/"
	for name, text := range map[string]string{"vendor": "0x15b3", "device": "0x1021", "class": "0x020700"} {
		write(t, at+name, text+"\n")
	}
	must(t, os.MkdirAll(sysfs+"/bus/pci/devices", 0o755))
	must(t, os.Symlink("../../../devices/pci0000:00/0000:17:00.0", sysfs+"/bus/pci/devices/0000:17:00.0"))
	must(t, os.Symlink("../../../0000:17:00.0", at+"infiniband/mlx5_0/device"))
	return sysfs
}

func dump(t *testing.T, l register.Layout, b []byte, err error) string {
	t.Helper()
	must(t, err)
	if len(b) != l.Size() {
		t.Fatalf("%v has %d bytes", l.ID(), len(b))
	}
	var s strings.Builder
	s.WriteString("Address    | Data\\n")
	for at := 0; at < len(b); at += 4 {
		fmt.Fprintf(&s, "0x%08x | 0x%x\\n", at, b[at:at+4])
	}
	return s.String()
}

const goodQuery = `cat <<'X'
FW Version:            28.43.1014
Part Number:           MCX75310AAS-NEA_Ax
Base GUID:             b83fd2030000a100        16
Base MAC:              b83fd200a100            16
PSID:                  MT_0000000838
Security Attributes:   secure-fw
Life cycle:            GA SECURED
Secure Boot Capable:   Enabled
EFUSE Security Ver:    2
Image Security Ver:    2
Encryption:            Disabled
X
`

// TestTools reads an adapter with the vendor's tools alone. They fork, so this
// and the next are not run beside others that write programs.
func TestTools(t *testing.T) {
	sysfs := pciHost(t)
	c := goodChip()
	mgir, err := register.Encode(c.mgir)
	mlock, err2 := register.Encode(c.mlock)
	dir := tools(t, goodQuery, map[register.ID]string{
		register.IDMGIR: dump(t, c.mgir, mgir, err), register.IDMLOCK: dump(t, c.mlock, mlock, err2),
	})
	h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, Tools: []string{dir}})
	must(t, err)
	d := h.Devices[0]
	if value(t, &d.LifeCycle) != attest.LifeGASecured || value(t, &d.SecureBoot) != attest.Yes || value(t, &d.RollbackFloor) != 2 ||
		value(t, &d.BaseGUID) != guid || value(t, &d.BaseMAC) != 0xb83fd200a100 || value(t, &d.MLOCK) != register.Unlocked ||
		value(t, &d.Pending).String() != "28.43.1014" || len(d.Running.Readings) != 3 {
		t.Errorf("got %+v", d.Lines())
	}
	if reason, _ := d.PartNumber.Why(); reason != hca.ReasonNotTold {
		t.Errorf("part number: %s; the tool spells it otherwise than cards do", reason)
	}
	if len(h.Tools) != 1 || h.Tools[0] != (attest.Tool{Name: "mstflint", Version: "4.36.0"}) {
		t.Errorf("tools %v", h.Tools)
	}
	// Registers that the tool could not read leave their facts unknown.
	v := d.Judge(goodSite())
	for _, want := range []string{"unknown-not-supported alternate_guid", "unknown-not-supported token_crdt", "unknown-no-access port_1_has_smi"} {
		if !slices.Contains(all(v), want) {
			t.Errorf("%v, want %q", all(v), want)
		}
	}
	if v.Compliant(attest.G0) {
		t.Error("it complies")
	}
}

// TestToolsDisagree checks that a fact is not known if one tool contradicts another.
func TestToolsDisagree(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"another image waits", "FW Version:            28.43.1014", "FW Version:            28.39.1002\nFW Version(Running):   28.43.1014", "pending-update pending"},
		{"PSID", "MT_0000000838", "MT_0000000839", "unknown-disagree psid"},
		{"made as another board", "PSID: ", "Orig PSID:             MT_0000000001\nPSID: ", "psid-not-of-maker orig_psid"},
		{"GUID not of manufacture", "b83fd2030000a100        16", "b83fd2030000a100        16\nOrig Base GUID:        b83fd2030000ffff        16", "guid-not-of-maker node_guid"},
		{"GUID below that of manufacture", "b83fd2030000a100        16", "b83fd2030000a101        16", "guid-not-of-maker node_guid"},
		{"GUID of the next card", "b83fd2030000a100        16", "b83fd2030000a0f0        16", "guid-not-of-maker node_guid"},
		{"life cycle", "GA SECURED", "PRODUCTION", "unknown-disagree life_cycle"},
		{"life cycle unheard of", "GA SECURED", "GA OPEN", "unknown-unreadable life_cycle"},
		{"words", "secure-fw", "secure-fw, dbg-token", "unknown-disagree attributes"},
		{"fuses that are no number", "EFUSE Security Ver:    2", "EFUSE Security Ver:    two", "unknown-unreadable rollback_floor"},
	} {
		c := goodChip()
		mgir, err := register.Encode(c.mgir)
		dir := tools(t, strings.Replace(goodQuery, tt.old, tt.new, 1), map[register.ID]string{register.IDMGIR: dump(t, c.mgir, mgir, err)})
		h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: pciHost(t), Tools: []string{dir}})
		must(t, err)
		if v := h.Devices[0].Judge(goodSite()); !slices.Contains(all(v), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, all(v), tt.want)
		}
	}
}

// TestToolsBlind checks that tools that can open no adapter are no finding against the adapters. The reason is the kernel's
// lockdown if that is known.
func TestToolsBlind(t *testing.T) {
	sysfs := pciHost(t)
	dir := tools(t, "echo '-E- Cannot open Device: 0000:17:00.0. Operation not permitted. MFE_CR_ERROR'; exit 1", nil)
	for _, want := range []hca.Reason{hca.ReasonBlind, hca.ReasonLockdown} {
		h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, Tools: []string{dir}})
		must(t, err)
		if reason, detail := h.Devices[0].LifeCycle.Why(); reason != want || !strings.Contains(detail, "cannot be opened") {
			t.Errorf("got %s, %s, want %s", reason, detail, want)
		}
		write(t, sysfs+"/kernel/security/lockdown", "none integrity [confidentiality]\n")
	}
	locked := tools(t, "echo '-E- Cannot open Device: 0000:17:00.0. HW access is disabled on the device.'; exit 1", nil)
	h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, Tools: []string{locked}})
	must(t, err)
	if d := h.Devices[0]; value(t, &d.MLOCK) != register.Locked {
		t.Error("a locked adapter is not told to be")
	}
	// If they can open another adapter, the fault is in this one.
	for name, text := range map[string]string{"vendor": "0x15b3", "device": "0x1021", "class": "0x020700"} {
		write(t, sysfs+"/bus/pci/devices/0000:65:00.0/"+name, text)
	}
	one := tools(t, "[ \"$2\" = 0000:65:00.0 ] || { echo '-E- Cannot open Device: 0000:17:00.0.'; exit 1; }\n"+goodQuery, nil)
	h, err = hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, Tools: []string{one}})
	must(t, err)
	if reason, _ := h.Devices[0].LifeCycle.Why(); reason != hca.ReasonUnreadable {
		t.Errorf("one of two: %s", reason)
	}
	if d := h.Devices[1]; value(t, &d.LifeCycle) != attest.LifeGASecured {
		t.Error("the other one is not read")
	}
	none, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, Tools: []string{t.TempDir()}})
	must(t, err)
	if reason, detail := none.Devices[0].MLOCK.Why(); reason != hca.ReasonLockdown || !strings.Contains(detail, "mstflint") {
		t.Errorf("nothing installed: %s, %s", reason, detail)
	}
}

// drivers answer as devlink does.
type drivers struct {
	info   *devlink.Info
	err    error
	closed bool
}

func (d *drivers) Info(bus, device string) (*devlink.Info, error) {
	if bus != "pci" || device != "0000:17:00.0" {
		return nil, fmt.Errorf("asked for %s/%s", bus, device)
	}
	return d.info, d.err
}

func (d *drivers) Close() error { d.closed = true; return nil }

// TestDrivers checks that devlink counts as much as the other sources.
func TestDrivers(t *testing.T) {
	t.Parallel()
	info := func(psid, running, stored string) *devlink.Info {
		return &devlink.Info{
			BoardSerial: "MT2244XZ0123", Fixed: map[string]string{"fw.psid": psid},
			Running: map[string]string{"fw.version": running}, Stored: map[string]string{"fw.version": stored},
		}
	}
	for _, tt := range []struct {
		name    string
		drivers drivers
		want    string // finding; "" none of these facts
		note    string
	}{
		{"agrees", drivers{info: info("MT_0000000838", "28.43.1014", "28.43.1014")}, "", ""},
		{"an image waits", drivers{info: info("MT_0000000838", "28.43.1014", "28.39.1002")}, "pending-update pending", ""},
		{"another PSID", drivers{info: info("MT_0000000839", "28.43.1014", "28.43.1014")}, "unknown-disagree psid", ""},
		{"version that is none", drivers{info: info("MT_0000000838", "28", "28.43.1014")}, "unknown-unreadable running", ""},
		{"does not answer", drivers{err: os.ErrDeadlineExceeded}, "unknown-no-access pending", "i/o timeout"},
	} {
		sysfs := pciHost(t)
		must(t, os.MkdirAll(sysfs+"/bus/pci/drivers/mlx5_core", 0o755))
		must(t, os.Symlink("../../../bus/pci/drivers/mlx5_core", sysfs+"/devices/pci0000:00/0000:17:00.0/driver"))
		h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs, Drivers: func() (hca.Drivers, error) { return &tt.drivers, nil }})
		must(t, err)
		codes := all(h.Devices[0].Judge(goodSite()))
		codes = slices.DeleteFunc(codes, func(s string) bool {
			return !slices.ContainsFunc([]string{" pending", " psid", " running"}, func(fact string) bool { return strings.HasSuffix(s, fact) })
		})
		codes = slices.DeleteFunc(codes, func(s string) bool { return s == "no-reference-image running" })
		if tt.want == "" && len(codes) > 0 || tt.want != "" && !slices.Contains(codes, tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, codes, tt.want)
		}
		if got := fmt.Sprint(h.Notes); !strings.Contains(got, tt.note) || tt.note == "" && len(h.Notes) > 0 || len(h.Problems) > 0 {
			t.Errorf("%s: notes %v, problems %v", tt.name, got, h.Problems)
		}
		if !tt.drivers.closed {
			t.Errorf("%s: left open", tt.name)
		}
	}
	none := func() (hca.Drivers, error) { return nil, devlink.ErrNone }
	if h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: pciHost(t), Drivers: none}); err != nil || len(h.Notes) > 0 {
		t.Errorf("kernel without devlink: %v, %v", h.Notes, err)
	}
}

// TestNodeGone: where sysfs has a node of fwctl and /dev has not, the tools are
// another way.
func TestNodeGone(t *testing.T) {
	sysfs := pciHost(t)
	must(t, os.MkdirAll(sysfs+"/class/fwctl", 0o755))
	must(t, os.Symlink("../../devices/pci0000:00/0000:17:00.0/fwctl/fwctl0", sysfs+"/class/fwctl/fwctl0"))
	ways := hca.Ways{Sysfs: sysfs, FWCTL: t.TempDir(), Tools: []string{tools(t, goodQuery, nil)}}
	h, err := hca.ReadHost(t.Context(), ways)
	must(t, err)
	if d := h.Devices[0]; value(t, &d.LifeCycle) != attest.LifeGASecured {
		t.Error("the tools were not asked")
	}
	// A node that is none is no reason to go another way.
	write(t, ways.FWCTL+"/fwctl0", "")
	h, err = hca.ReadHost(t.Context(), ways)
	must(t, err)
	if reason, detail := h.Devices[0].LifeCycle.Why(); reason != hca.ReasonUnreadable || !strings.Contains(detail, "not a device node of fwctl") {
		t.Errorf("got %s, %s", reason, detail)
	}
}

// TestRecovery: an adapter whose firmware does not run is seen, by its PCI id
// alone, and one behind a bridge of long addresses gets into a statement.
func TestRecovery(t *testing.T) {
	t.Parallel()
	sysfs := pciHost(t)
	for name, text := range map[string]string{"vendor": "0x15b3", "device": "0x0218", "class": "0x058000"} {
		write(t, sysfs+"/bus/pci/devices/10000:65:00.0/"+name, text)
	}
	h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs})
	must(t, err)
	d := h.Devices[1]
	if v := d.Judge(goodSite()); d.Name != "" || v.Compliant(attest.G0) || !slices.Contains(all(v), "recovery-mode recovery") {
		t.Errorf("%s: %v", d.PCI, all(v))
	}
	d.Name = "mlx5_9"
	d.NodeGUID.Readings, d.SystemImageGUID.Readings = h.Devices[0].NodeGUID.Readings, h.Devices[0].SystemImageGUID.Readings
	s := d.Statement(d.Judge(nil))
	s.Ports = h.Devices[0].Statement(d.Judge(nil)).Ports
	if text := encoded(t, s); !strings.Contains(text, `"pci_address":"10000:65:00.0"`) || !strings.Contains(text, `"recovery":"yes"`) {
		t.Error(text)
	}
}

// TestSecondFunction: the functions of a card share the GUIDs of its maker.
func TestSecondFunction(t *testing.T) {
	dir := tools(t, strings.Replace(goodQuery, "b83fd2030000a100        16", "b83fd2030000a0f1        16", 1), nil)
	h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: pciHost(t), Tools: []string{dir}})
	must(t, err)
	if v := h.Devices[0].Judge(goodSite()); slices.Contains(all(v), "guid-not-of-maker node_guid") {
		t.Errorf("the last of the maker's GUIDs: %v", all(v))
	}
}

// TestCollectLyingFirmware: firmware and driver that name different GUIDs are no
// adapter that a statement could name.
func TestCollectLyingFirmware(t *testing.T) {
	t.Parallel()
	sysfs, procfs := plant(t, "two-adapters.txtar")
	must(t, os.RemoveAll(sysfs+"/class/infiniband/qib0"))
	o := hcasim.ConnectX7(guid, guid+1)
	_, err := hca.Collect(t.Context(), hca.Ways{Sysfs: sysfs, FWCTL: serve(t, hcasim.New(o), guid)}, procfs, nil)
	if err == nil || !strings.Contains(err.Error(), "adapter mlx5_0: port_1_guid") || !strings.Contains(err.Error(), "sysfs says") {
		t.Errorf("got %v", err)
	}
	good, err := hca.Collect(t.Context(), hca.Ways{Sysfs: sysfs, FWCTL: serve(t, newCard(t), guid)}, procfs, goodSite())
	if err != nil || len(good.HCAs) != 1 || good.HCAs[0].Firmware.LifeCycle != attest.LifeGASecured {
		t.Errorf("got %+v, %v", good, err)
	}
}
