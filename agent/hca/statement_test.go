package hca_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent/hca"
	"portcullis/agent/hca/register"
	"portcullis/attest"
)

func encoded(t *testing.T, h attest.HCA) string {
	t.Helper()
	s := &attest.Statement{
		Version: attest.StatementVersion, Host: "h1", BootID: "3a6e2f4b-7c1d-4f6e-9a3b-0d5c8e7f1a2b",
		CollectedAt: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), Agent: "1.0", HCAs: []attest.HCA{h},
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStatement checks that known and unknown facts go into the statement, and that the same adapter results in the same
// bytes.
func TestStatement(t *testing.T) {
	t.Parallel()
	d := read(t, goodChip())
	h := d.Statement(d.Judge(goodSite()))
	two := uint32(2)
	want := attest.Firmware{
		Running: "28.43.1014", Pending: "28.43.1014", LifeCycle: attest.LifeGASecured, SecureBoot: attest.Yes, Recovery: attest.No,
		Attributes: []string{"secure-fw"}, SecurityVersion: &two, RollbackFloor: &two, Assurance: attest.G1,
		Reference: &attest.Reference{SHA256: goodSite().image.SHA256, KeyID: goodSite().image.KeyID},
	}
	if diff := cmp.Diff(h.Firmware, want); diff != "" {
		t.Errorf("firmware (-got +want):\n%s", diff)
	}
	ports := []attest.Port{{Num: 1, GUID: guid, LinkLayer: attest.LinkInfiniBand, HasSMI: attest.No}, {Num: 2, LinkLayer: attest.LinkEthernet}}
	if diff := cmp.Diff(h.Ports, ports); diff != "" {
		t.Errorf("ports (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(h.Unread, []attest.Unread{{Fact: "base_guid", Reason: "refused"}}); diff != "" {
		t.Errorf("unread (-got +want):\n%s", diff)
	}
	if len(h.Tokens) != len(register.Sessions()) || h.Tokens[0].Session != attest.No || h.BaseMAC != "b83fd200a100" || h.AlternateGUID != attest.No {
		t.Errorf("got %+v", h)
	}
	later := goodChip()
	later.mgir.Hardware.Uptime = 77
	again := read(t, later)
	if a, b := encoded(t, h), encoded(t, again.Statement(again.Judge(goodSite()))); a != b {
		t.Errorf("the same adapter gives\n%s\nand\n%s", a, b)
	}
	other := goodChip()
	other.mgir.Firmware.BuildID++
	if o := read(t, other); o.Statement(o.Judge(goodSite())).Registers == h.Registers {
		t.Error("another build has the same digest of registers")
	}
}

// TestStatementOfNothing checks that facts that no source reports are recorded as unknown, with the reason.
func TestStatementOfNothing(t *testing.T) {
	t.Parallel()
	sysfs, _ := plant(t, "two-adapters.txtar")
	h, err := hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs})
	if err != nil || len(h.Devices) != 2 || len(h.Problems) > 0 {
		t.Fatalf("got %+v, %v", h, err)
	}
	d := h.Devices[0]
	s := d.Statement(d.Judge(nil))
	if s.Firmware.LifeCycle != attest.LifeUnknown || s.Firmware.SecureBoot != attest.Unknown || s.Firmware.Attributes != nil ||
		s.Firmware.SecurityVersion != nil || s.Lock.MLOCK != attest.MLOCKUnknown || s.Tokens != nil ||
		s.Firmware.Assurance != attest.AssuranceNone || s.Ports[0].HasSMI != attest.Unknown {
		t.Errorf("got %+v", s)
	}
	reasons := map[string]string{}
	for _, u := range s.Unread {
		reasons[u.Fact] = u.Reason
	}
	if reasons["life_cycle"] != "no-access" || reasons["mlock"] != "no-access" || reasons["port_1_has_smi"] != "no-access" || reasons["tokens"] != "no-access" {
		t.Errorf("reasons %v", reasons)
	}
	if text := encoded(t, s); !strings.Contains(text, `"psid":"MT_0000000838"`) {
		t.Error(text)
	}
	write(t, sysfs+"/kernel/security/lockdown", "none [integrity] confidentiality\n")
	if h, err = hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs}); err != nil || !h.Lockdown {
		t.Fatalf("got %+v, %v", h, err)
	}
	for _, d := range h.Devices {
		if reason, detail := d.LifeCycle.Why(); reason != hca.ReasonLockdown {
			t.Errorf("%s under lockdown: %s, %s", d.Name, reason, detail)
		}
	}
	write(t, sysfs+"/kernel/security/lockdown", "[none] integrity confidentiality\n")
	if h, err = hca.ReadHost(t.Context(), hca.Ways{Sysfs: sysfs}); err != nil || h.Lockdown {
		t.Errorf("a kernel that is not locked down: got %+v, %v", h, err)
	}
}
