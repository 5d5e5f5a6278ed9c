package hca_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"portcullis/agent/hca"
	"portcullis/agent/hca/register"
	"portcullis/agent/hca/sysfs"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

// chip answers registers as a test wants; a fresh one is as it must be.
type chip struct {
	mgir    register.MGIR
	mfsv    register.MFSV
	mlock   register.MLOCK
	boot    register.MCQS
	pending string // version that waits; "" none
	token   map[register.Session]register.MDSR
	item    map[nvconfig.Access][]byte
	known   bool // setting 3/273
	vport   register.VportContext
	fail    map[register.ID]error
	failMAD error
}

const guid = ib.GUID(0xb83fd2030000a100)

func goodChip() *chip {
	c := &chip{
		mfsv: register.MFSV{Image: 2, EFUSE: 2},
		boot: register.MCQS{Identifier: register.BootImage, Last: true},
		item: map[nvconfig.Access][]byte{nvconfig.Next: make([]byte, 12), nvconfig.Current: make([]byte, 12)}, known: true,
		token: map[register.Session]register.MDSR{}, fail: map[register.ID]error{},
		vport: register.VportContext{PortGUID: guid, NodeGUID: guid, SystemImageGUID: guid},
	}
	c.mgir.Hardware = register.HardwareInfo{DeviceID: 0x1021, HWDevID: 0x218, BaseMAC: 0xb83fd200a100}
	c.mgir.Firmware = register.FirmwareInfo{
		Secured: true, SignedFW: true, SecureBoot: true, LifeCycleLow: register.GASecured, Major: 28, Minor: 43, SubMinor: 1014,
	}
	copy(c.mgir.Firmware.PSID[:], "MT_0000000838")
	for _, kind := range register.Sessions() {
		c.token[kind] = register.MDSR{Type: kind, Status: register.SessionNone}
	}
	return c
}

func (c *chip) Access(_ context.Context, id register.ID, method register.Method, data []byte) ([]byte, error) {
	if err := c.fail[id]; err != nil {
		return nil, err
	}
	if method != register.Read {
		return nil, errors.New("reading facts wrote " + id.String())
	}
	switch id {
	case register.IDMGIR:
		return register.Encode(c.mgir)
	case register.IDMFSV:
		return register.Encode(c.mfsv)
	case register.IDMLOCK:
		return register.Encode(c.mlock)
	case register.IDMCQS:
		return register.Encode(c.boot)
	case register.IDMCQI:
		return c.mcqi(data)
	case register.IDMDSR:
		return c.mdsr(data)
	case register.IDMNVQC:
		return register.Encode(register.MNVQC{CanRead: c.known, CanWrite: c.known})
	case register.IDMNVGC:
		return register.Encode(register.MNVGC{ReadsCurrent: c.item[nvconfig.Current] != nil})
	case register.IDMNVDA:
		h, _, err := nvconfig.ParseHeader(data)
		if h.Address.Class() == nvconfig.Global {
			return nil, refused(register.BadParameter) // it reports no base GUID
		}
		return nvconfig.Item{Header: h, Data: c.item[h.Access]}.Append(nil), err
	}
	return nil, refused(register.BadSystemState)
}

func refused(s register.Status) error { return &register.Error{What: "test", Status: s} }

func (c *chip) mcqi(data []byte) ([]byte, error) {
	m, err := register.Decode[register.MCQI](data)
	if err != nil {
		return nil, err
	}
	v := register.ComponentVersion{}
	copy(v.Text[:], "28.43.1014")
	if m.Pending {
		if c.pending == "" {
			return nil, refused(register.BadParameter)
		}
		v.Text = [92]byte{}
		copy(v.Text[:], c.pending)
	}
	b, err := register.Encode(v)
	m.DataSize = uint16(copy(m.Data[:], b))
	return errorOr(m, err)
}

func errorOr[T register.Layout](v T, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return register.Encode(v)
}

func (c *chip) mdsr(data []byte) ([]byte, error) {
	m, err := register.Decode[register.MDSR](data)
	if err != nil {
		return nil, err
	}
	if answer, ok := c.token[m.Type]; ok {
		return register.Encode(answer)
	}
	return nil, refused(register.BadParameter)
}

func (c *chip) VportContext(context.Context, uint8) (register.VportContext, error) {
	return c.vport, c.failMAD
}

func (c *chip) PKeys(context.Context, uint8) ([]ib.PKey, error) { return nil, c.failMAD }

func function() *sysfs.Function {
	return &sysfs.Function{
		Address: "0000:17:00.0", Vendor: sysfs.VendorNVIDIA, DeviceID: 0x1021, Class: sysfs.ClassInfiniBand,
		VPD: sysfs.VPD{Part: "MCX75310AAS-NEAT", Serial: "MT2244XZ0123"},
	}
}

func rdma() *sysfs.RDMA {
	return &sysfs.RDMA{
		Name: "mlx5_0", NodeGUID: guid, SystemImageGUID: guid, BoardID: "MT_0000000838", Type: "MT4129", Firmware: "28.43.1014",
		Ports: []sysfs.Port{{Num: 1, LinkLayer: sysfs.LinkInfiniBand, GUID: guid}, {Num: 2, LinkLayer: sysfs.LinkEthernet}},
	}
}

// site has one board and one image.
type site struct {
	refuse []string
	image  hca.Image
}

func goodSite() *site {
	return &site{image: hca.Image{
		PSID: "MT_0000000838", Version: hca.Version{Major: 28, Minor: 43, SubMinor: 1014}, SecurityVersion: 2,
		SHA256: strings.Repeat("ab", 32), KeyID: "11111111-2222-3333-4444-555555555555",
	}}
}

func (s *site) Refuse(hca.Claim) []string { return s.refuse }

func (s *site) Image(string, hca.Version) (hca.Image, bool, string) {
	return s.image, s.image.PSID != "", "no image of it is kept"
}

func read(t *testing.T, c hca.Access) *hca.Device {
	t.Helper()
	return hca.ReadDevice(t.Context(), function(), rdma(), c, hca.FromFWCTL)
}

// all are the codes of a verdict, with the fact of each.
func all(v hca.Verdict) []string {
	var out []string
	add := func(findings []hca.Finding) {
		for _, f := range findings {
			if f.Code != hca.CodeNotAvailable {
				out = append(out, string(f.Code)+" "+f.Fact)
			}
		}
	}
	for _, l := range v.Missing {
		add(l.Findings)
	}
	add(v.Identity)
	add(v.Lock)
	slices.Sort(out)
	return slices.Compact(out)
}

func TestGoodDevice(t *testing.T) {
	t.Parallel()
	d := read(t, goodChip())
	v := d.Judge(goodSite())
	if got := all(v); len(got) > 0 || v.Assurance != attest.G1 || !v.Compliant(attest.G1) || v.Compliant(attest.G2) {
		t.Fatalf("assurance %v, findings %v", v.Assurance, got)
	}
	if !v.Compliant(attest.G0) || v.Compliant(attest.AssuranceNone) {
		t.Error("it complies at G0, and nothing complies at no level")
	}
	if v.Reference == nil || v.Reference.SHA256 != goodSite().image.SHA256 {
		t.Errorf("reference %+v", v.Reference)
	}
	var missing []attest.Assurance
	for _, l := range v.Missing {
		missing = append(missing, l.Level)
	}
	if diff := cmp.Diff(missing, []attest.Assurance{attest.G2, attest.G3}); diff != "" {
		t.Errorf("levels not reached (-got +want):\n%s", diff)
	}
	if running, _ := d.Running.Value(); running.String() != "28.43.1014" || len(d.Running.Readings) != 3 {
		t.Errorf("running %v by %v", running, d.Running.Readings)
	}
	for _, l := range d.Lines() {
		if l.Reason != "" && l.Fact != "base_guid" {
			t.Errorf("%s is unknown: %s, %s", l.Fact, l.Reason, l.Detail)
		}
	}
}

// TestFindings breaks a good adapter in one way each.
func TestFindings(t *testing.T) {
	t.Parallel()
	fw := func(alter func(*register.FirmwareInfo)) func(*chip) { return func(c *chip) { alter(&c.mgir.Firmware) } }
	for _, tt := range []struct {
		name  string
		alter func(*chip)
		want  []string
		level attest.Assurance
	}{
		{"takes unsigned firmware", fw(func(f *register.FirmwareInfo) { f.Secured = false }), []string{"not-secure-fw attributes"}, attest.AssuranceNone},
		{"neither word", fw(func(f *register.FirmwareInfo) { f.Secured, f.SignedFW = false, false }), []string{"not-secure-fw attributes"}, attest.AssuranceNone},
		{"debug firmware", fw(func(f *register.FirmwareInfo) { f.Debug = true }), []string{"attribute attributes"}, attest.AssuranceNone},
		{"development firmware", fw(func(f *register.FirmwareInfo) { f.Dev = true }), []string{"attribute attributes"}, attest.AssuranceNone},
		{"development firmware, second bit", fw(func(f *register.FirmwareInfo) { f.DevSC = true }), []string{"attribute attributes"}, attest.AssuranceNone},
		{"development chip", fw(func(f *register.FirmwareInfo) { f.DevState = true }), []string{"development-chip development"}, attest.AssuranceNone},
		{"production", fw(func(f *register.FirmwareInfo) { f.LifeCycleLow = register.Production }), []string{"life-cycle life_cycle"}, attest.AssuranceNone},
		{"RMA", fw(func(f *register.FirmwareInfo) { f.LifeCycleLow = register.RMA }), []string{"life-cycle life_cycle"}, attest.AssuranceNone},
		{"life cycle without meaning", fw(func(f *register.FirmwareInfo) { f.LifeCycleTop = 1 }), []string{"unknown-unreadable life_cycle"}, attest.AssuranceNone},
		{"unknown chip", func(c *chip) { c.mgir.Hardware.HWDevID = 0x3FF }, []string{"unknown-unreadable life_cycle"}, attest.AssuranceNone},
		{"FS5 chip, number of FS4", func(c *chip) { c.mgir.Hardware.HWDevID = 0x21E }, []string{"unknown-unreadable life_cycle"}, attest.AssuranceNone},
		{"FS5 chip in production", func(c *chip) {
			c.mgir.Hardware.HWDevID = 0x21E
			c.mgir.Firmware.LifeCycleLow, c.mgir.Firmware.LifeCycleTop = 2, 1
		}, nil, attest.G1},
		{"FS5 chip before production", func(c *chip) {
			c.mgir.Hardware.HWDevID = 0x21E
			c.mgir.Firmware.LifeCycleLow, c.mgir.Firmware.LifeCycleTop = 0, 1
		}, []string{"life-cycle life_cycle"}, attest.AssuranceNone},
		{"no secure boot", fw(func(f *register.FirmwareInfo) { f.SecureBoot = false }), []string{"secure-boot-off secure_boot"}, attest.AssuranceNone},
		{"recovery", func(c *chip) { c.mgir.Hardware.HWDevID = 0x1021 }, []string{"unknown-disagree recovery", "unknown-unreadable life_cycle"}, attest.AssuranceNone},
		{"another PSID than the driver's", fw(func(f *register.FirmwareInfo) { copy(f.PSID[:], "MT_0000000839") }), []string{"no-reference-image running", "unknown-disagree psid"}, attest.AssuranceNone},
		{"PSID that is no text", fw(func(f *register.FirmwareInfo) { f.PSID[3] = 7 }), []string{"no-reference-image running", "unknown-disagree psid"}, attest.AssuranceNone},
		{"no PSID", fw(func(f *register.FirmwareInfo) { f.PSID = [16]byte{} }), []string{"no-reference-image running", "unknown-disagree psid"}, attest.AssuranceNone},
		{"another version than the driver's", fw(func(f *register.FirmwareInfo) { f.SubMinor = 1000 }), []string{"no-reference-image running", "unknown-disagree running"}, attest.AssuranceNone},
		{"an image waits", func(c *chip) { c.pending = "28.39.1002" }, []string{"pending-update pending"}, attest.AssuranceNone},
		{"an image waits and hides", func(c *chip) { c.boot.State = register.ComponentActivePendingReset }, []string{"unknown-unreadable pending"}, attest.AssuranceNone},
		{"version that is none", func(c *chip) { c.pending = "28.x" }, []string{"unknown-unreadable pending"}, attest.AssuranceNone},
		{"no boot image", func(c *chip) { c.boot.Identifier = register.OEMNVConfig }, []string{"unknown-unreadable pending"}, attest.AssuranceNone},
		{"components without end", func(c *chip) { c.boot.Identifier, c.boot.Last = register.OEMNVConfig, false }, []string{"unknown-unreadable pending"}, attest.AssuranceNone},
		{"below the fuses", func(c *chip) { c.mfsv.EFUSE = 3 }, []string{"below-rollback-floor security_version"}, attest.AssuranceNone},
		{"token in force", func(c *chip) {
			c.token[register.SessionRMDT] = register.MDSR{Type: register.SessionRMDT, Status: register.SessionActive}
		}, []string{"token-session token_rmdt"}, attest.AssuranceNone},
		{"challenge is out", func(c *chip) {
			c.token[register.SessionCRCS] = register.MDSR{Type: register.SessionCRCS, Status: register.SessionChallenged}
		}, []string{"token-session token_crcs"}, attest.AssuranceNone},
		{"token ended, but still active", func(c *chip) {
			c.token[register.SessionDebug] = register.MDSR{Type: register.SessionDebug, Info: register.InfoSessionActive}
		}, []string{"token-session token_debug"}, attest.AssuranceNone},
		{"token status without meaning", func(c *chip) { c.token[register.SessionFRC] = register.MDSR{Type: register.SessionFRC, Status: 9} }, []string{"unknown-refused token_frc"}, attest.AssuranceNone},
		{"host may not ask for tokens", func(c *chip) {
			c.token[register.SessionFRC] = register.MDSR{Type: register.SessionFRC, Status: register.SessionFailed, Info: register.InfoHostForbidden}
		}, []string{"unknown-refused token_frc"}, attest.AssuranceNone},
		{"answer about another token", func(c *chip) {
			c.token[register.SessionRMDT] = register.MDSR{Type: register.SessionCS, Status: register.SessionNone}
		}, []string{"unknown-unreadable token_rmdt"}, attest.AssuranceNone},
		{"a kind of token that it does not have", func(c *chip) { delete(c.token, register.SessionMTFA) }, nil, attest.G1},
		{"alternate GUID", func(c *chip) { c.item[nvconfig.Current][0] = 0x80 }, []string{"alternate-guid alternate_guid"}, attest.G1},
		{"alternate GUID from the next boot on", func(c *chip) { c.item[nvconfig.Next][0] = 0x80 }, []string{"alternate-guid alternate_guid"}, attest.G1},
		{"alternate GUID, and current values unreadable", func(c *chip) {
			c.item[nvconfig.Next][0], c.item[nvconfig.Current] = 0x80, nil
		}, []string{"alternate-guid alternate_guid"}, attest.G1},
		{"no setting for alternate GUIDs", func(c *chip) { c.known = false }, nil, attest.G1},
		{"item too short", func(c *chip) { c.item[nvconfig.Next] = make([]byte, 8) }, []string{"unknown-unreadable alternate_guid"}, attest.G1},
		{"locked, and hides its settings", func(c *chip) {
			c.mlock.State, c.fail[register.IDMNVDA] = register.Locked, refused(register.BadSystemState)
		}, []string{"unknown-locked alternate_guid"}, attest.G1},
		{"another port GUID than the driver's", func(c *chip) { c.vport.PortGUID++ }, []string{"unknown-disagree port_1_guid"}, attest.G1},
		{"another node GUID than the driver's", func(c *chip) { c.vport.NodeGUID++ }, []string{"unknown-disagree node_guid"}, attest.G1},
		{"lock state without meaning", func(c *chip) { c.mlock.State = 7 }, []string{"unknown-unreadable mlock"}, attest.G1},
		{"no lock register", func(c *chip) { c.fail[register.IDMLOCK] = refused(register.BadSystemState) }, []string{"unknown-not-supported mlock"}, attest.G1},
		{"no port context", func(c *chip) { c.failMAD = refused(register.InternalError) }, []string{"unknown-refused port_1_has_smi"}, attest.G1},
		{"no security version", func(c *chip) { c.fail[register.IDMFSV] = unix.ETIMEDOUT }, []string{
			"no-reference-image running", "unknown-timeout rollback_floor", "unknown-timeout security_version",
		}, attest.AssuranceNone},
		{"busy", func(c *chip) { c.fail[register.IDMCQS] = refused(register.Busy) }, []string{"unknown-busy pending"}, attest.AssuranceNone},
		{"not root", func(c *chip) { c.fail[register.IDMLOCK] = unix.EPERM }, []string{"unknown-no-privilege mlock"}, attest.G1},
		{"no tokens register", func(c *chip) { clear(c.token) }, []string{
			"unknown-not-supported token_crcs", "unknown-not-supported token_crdt", "unknown-not-supported token_cs", "unknown-not-supported token_debug",
			"unknown-not-supported token_frc", "unknown-not-supported token_mtfa", "unknown-not-supported token_rmcs", "unknown-not-supported token_rmdt",
		}, attest.AssuranceNone},
	} {
		c := goodChip()
		tt.alter(c)
		v := read(t, c).Judge(goodSite())
		if diff := cmp.Diff(all(v), tt.want); diff != "" || v.Assurance != tt.level {
			t.Errorf("%s: assurance %v, want %v; findings (-got +want):\n%s", tt.name, v.Assurance, tt.level, diff)
		}
		if v.Compliant(attest.G0) != (tt.want == nil) {
			t.Errorf("%s: complies %v", tt.name, v.Compliant(attest.G0))
		}
	}
}

// TestEveryRegisterCounts: whichever register fails, the adapter does not
// comply.
func TestEveryRegisterCounts(t *testing.T) {
	t.Parallel()
	for _, id := range []register.ID{
		register.IDMGIR, register.IDMFSV, register.IDMLOCK, register.IDMCQS, register.IDMCQI, register.IDMDSR,
		register.IDMNVQC, register.IDMNVGC, register.IDMNVDA,
	} {
		c := goodChip()
		c.fail[id] = errors.New("no answer")
		if v := read(t, c).Judge(goodSite()); v.Compliant(attest.G0) || len(all(v)) == 0 {
			t.Errorf("without %v: assurance %v, findings %v", id, v.Assurance, all(v))
		}
	}
}

func TestLevelsNeedTheSite(t *testing.T) {
	t.Parallel()
	d := read(t, goodChip())
	if v := d.Judge(nil); v.Assurance != attest.AssuranceNone || !slices.Contains(all(v), "no-firmware-list psid") {
		t.Errorf("without a site: %v, %v", v.Assurance, all(v))
	}
	s := goodSite()
	s.refuse = []string{"28.43.1014 is below 28.45.0000"}
	if v := d.Judge(s); v.Assurance != attest.AssuranceNone || !slices.Contains(all(v), "firmware-not-allowed running") {
		t.Errorf("not on the list: %v, %v", v.Assurance, all(v))
	}
	if v := d.Judge(&site{}); v.Assurance != attest.G0 || !slices.Contains(all(v), "no-reference-image running") || v.Reference != nil {
		t.Errorf("without an image: %v, %v", v.Assurance, all(v))
	}
	for name, alter := range map[string]func(*hca.Image){
		"psid":             func(i *hca.Image) { i.PSID = "MT_0000000839" },
		"running":          func(i *hca.Image) { i.Version.Minor++ },
		"security_version": func(i *hca.Image) { i.SecurityVersion++ },
	} {
		s := goodSite()
		alter(&s.image)
		if v := d.Judge(s); v.Assurance != attest.G0 || !slices.Contains(all(v), "reference-image-differs "+name) {
			t.Errorf("image with another %s: %v, %v", name, v.Assurance, all(v))
		}
	}
}

// TestForeign: of adapters of other makers nothing is claimed.
func TestForeign(t *testing.T) {
	t.Parallel()
	f := function()
	f.Vendor = 0x8086
	v := hca.ReadDevice(t.Context(), f, rdma(), goodChip(), hca.FromFWCTL).Judge(goodSite())
	if v.Assurance != attest.AssuranceNone || v.Compliant(attest.G0) || !slices.Contains(all(v), "not-nvidia psid") {
		t.Errorf("got %v, %v", v.Assurance, all(v))
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"28.43.1014": "28.43.1014", "16.35.2": "16.35.0002", "016.035.0002": "16.35.0002", "4294967295.0.0": "4294967295.0.0000"} {
		if v, err := hca.ParseVersion(in); err != nil || v.String() != want {
			t.Errorf("%q: got %v, %v, want %s", in, v, err, want)
		}
	}
	for _, in := range []string{"", "28", "28.43", "28.43.1014.1", "28.43.x", "28..1", "+28.43.1014", "28.43.-1", "4294967296.0.0", "28.43.00000000001"} {
		if v, err := hca.ParseVersion(in); err == nil {
			t.Errorf("%q: got %v, want an error", in, v)
		}
	}
}
