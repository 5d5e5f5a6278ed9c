package profile_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
	"portcullis/firmware/nvconfig/profile"
)

// TestDefault checks that each rule is of a known parameter, has a reason, and wants a value as its field writes it.
// Nothing of the hardening list is forgotten.
func TestDefault(t *testing.T) {
	p := profile.Default()
	seen := map[string]bool{}
	for _, r := range p.Rules {
		par, ok := nvconfig.LookUp(r.Parameter)
		if !ok || seen[r.Parameter] || r.Reason == "" || r.Site || (r.Need == profile.Record) != (r.Want == "") {
			t.Errorf("rule %+v", r)
			continue
		}
		seen[r.Parameter] = true
		if r.Want == "" || r.Want == profile.DevicePSID {
			continue
		}
		data := make([]byte, par.Item.Size)
		err := par.Field.Set(data, r.Want)
		if text, _ := par.Field.Format(data); err != nil || text != r.Want {
			t.Errorf("%s wants %q, written as %q, %v", r.Parameter, r.Want, text, err)
		}
	}
	for _, l := range nvconfig.Layouts() {
		for _, f := range l.Fields {
			part := strings.HasPrefix(l.Name, "file_") || strings.HasPrefix(l.Name, "nv_file_id") // of a file
			beside := slices.Contains([]string{"SRIOV_VALID", "VIRTUAL_GUID_ERASE_ON_POWERUP", "VIRTUAL_NODE_GUID"}, f.Name)
			mark := l.Name == "nv_config_profile" || l.Name == "nv_secure_host"
			if !part && !beside && !mark && !seen[f.Name] {
				t.Errorf("the list says nothing of %s", f.Name)
			}
		}
	}
	if firewall, _ := p.Rule("SM_DISABLE"); firewall.Want != "True" || firewall.Need != profile.Required {
		t.Errorf("the SMP firewall: %+v", firewall)
	}
	changed := profile.Default()
	changed.Rules[0].Want = "False"
	if r, _ := profile.Default().Rule("SM_DISABLE"); r.Want != "True" {
		t.Error("one caller changes the list of all")
	}
}

const site = `
name: oslo-h100
version: 4
settings:
  HOST_PRIV_NIC_RESET: {value: disable, need: required, reason: tenants open a ticket}
  PLDM_FW_UPDATE_DISABLE: {value: true, reason: the BMC updates nothing}
  EXP_ROM_PXE_ENABLE: {need: record, reason: hosts boot over this adapter}
  NUM_OF_VFS: {value: 16, reason: our virtual machines}
  PSID_LOCK: {value: MT_0000000838, reason: one board only}
`

func TestLoad(t *testing.T) {
	p, err := profile.Load([]byte(site))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "oslo-h100" || p.Version != 4 || len(p.Rules) != len(profile.Default().Rules) {
		t.Errorf("%s %d with %d rules", p.Name, p.Version, len(p.Rules))
	}
	got := []profile.Rule{}
	for _, r := range p.Rules {
		if r.Site {
			got = append(got, r)
		}
	}
	if d := cmp.Diff(got, []profile.Rule{
		{Parameter: "HOST_PRIV_NIC_RESET", Want: "DISABLE", Need: profile.Required, Reason: "tenants open a ticket", Site: true, Ours: "record"},
		{Parameter: "PSID_LOCK", Want: "MT_0000000838", Need: profile.WhereKnown, Reason: "one board only", Site: true, Ours: "device, where known"},
		{Parameter: "PLDM_FW_UPDATE_DISABLE", Want: "True", Need: profile.WhereKnown, Reason: "the BMC updates nothing", Site: true, Ours: "record"},
		{Parameter: "NUM_OF_VFS", Want: "16", Need: profile.WhereKnown, Reason: "our virtual machines", Site: true, Ours: "record"},
		{Parameter: "EXP_ROM_PXE_ENABLE", Need: profile.Record, Reason: "hosts boot over this adapter", Site: true, Ours: "False, where known"},
	}); d != "" {
		t.Error(d)
	}
	marked, err := profile.Load([]byte("name: a\nversion: 9\nuuid: c0ffee00-1122-3344-5566-778899aabbcc\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := marked.Rule("PROFILE_VERSION"); !ok || r.Want != "9" {
		t.Errorf("mark: %+v", r)
	}
	if _, err := json.Marshal(marked); err != nil {
		t.Error(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	const head = "name: a\nversion: 1\nsettings:\n  "
	for text, want := range map[string]string{
		"":                                 "it is empty",
		"name: a\n":                        "version: want a number",
		"name: a b\nversion: 1":            `name "a b"`,
		"name: a\nversion: 1\nsetting: {}": "setting",
		"name: a\nversion: 1\nuuid: 7":     "UUID",
		head + "SM_DISABLED: {value: True, reason: r}":             `"SM_DISABLED" is not a setting`,
		head + "SM_DISABLE: {value: False}":                        "a reason is missing",
		head + "SM_DISABLE: {reason: r}":                           "value and need are missing",
		head + "SM_DISABLE: {value: maybe, reason: r}":             `SM_DISABLE: "maybe"`,
		head + "SM_DISABLE: {need: sometimes, reason: r}":          "want record, where known or required",
		head + "SRIOV_EN: {need: required, reason: r}":             "a value is missing",
		head + "SRIOV_EN: {need: record, value: True, reason: r}":  "only recorded",
		head + "LINK_TYPE: {value: device, reason: r}":             `LINK_TYPE: "device": want IB, ETH`,
		head + "SM_DISABLE: {value: True, reason: r, because: r}":  "because",
		strings.Repeat("#", 64<<10+1):                              "more than",
		head + "SRIOV_EN: {reason: r}\n  NUM_OF_VFS: {value: 1}":   "NUM_OF_VFS: a reason is missing",
		head + "SRIOV_EN: {reason: r}\n  NUM_OF_VFS: {value: 1}\n": "SRIOV_EN: value and need",
	} {
		if _, err := profile.Load([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
}

// locked returns a card that matches the profile, with the values of a signed file.
func locked(t testing.TB, p *profile.Profile, m profile.Method) profile.Card {
	t.Helper()
	c := profile.Card{PSID: "TST0000000001", Ports: 2, Functions: 2}
	for _, a := range p.Addresses(c) {
		l, ok := nvconfig.LayoutOf(a)
		if !ok {
			t.Fatalf("%v has no layout", a)
		}
		factory := nvconfig.Item{Header: nvconfig.Header{Priority: nvconfig.MLNX, OverrideEnabled: true, Access: nvconfig.Default, Address: a}, Data: make([]byte, l.Size)}
		if !l.Whole {
			factory.Data[l.Size-1] = 0x80 // something of the factory's own
		}
		c.Readings = append(c.Readings, profile.Reading{Address: a, Support: profile.Supported, Default: profile.Answer{State: profile.Read, Item: factory}})
	}
	items, left := p.Items(c, m)
	if len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
	for i := range c.Readings {
		r := &c.Readings[i]
		item := r.Default.Item
		for _, x := range items {
			if x.Address.Class().Family() == r.Address.Class().Family() && x.Address.Index() == r.Address.Index() && (x.Address == r.Address || x.Address.Class() == nvconfig.AllHostsFunctions) {
				item = x
			}
		}
		item.Address = r.Address
		item.Data = slices.Clone(item.Data)
		item.Access = nvconfig.Current
		r.Current = profile.Answer{State: profile.Read, Item: item}
		item.Data = slices.Clone(item.Data)
		item.Access = nvconfig.Next
		r.Next = profile.Answer{State: profile.Read, Item: item}
	}
	return c
}

func at(t testing.TB, c *profile.Card, a nvconfig.Address) *profile.Reading {
	t.Helper()
	i := slices.IndexFunc(c.Readings, func(r profile.Reading) bool { return r.Address == a })
	if i < 0 {
		t.Fatalf("%v is not read", a)
	}
	return &c.Readings[i]
}

// found returns findings as "parameter code blocks".
func found(r *profile.Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		s := f.Parameter + " " + string(f.Code)
		if f.Blocks {
			s += " blocks"
		}
		out = append(out, s)
	}
	return out
}

// TestJudge breaks a locked card in one way after the other.
func TestJudge(t *testing.T) {
	p := profile.Default()
	firewall, guid, port2 := nvconfig.GlobalItem(290), nvconfig.FunctionItem(0, 1, 273), nvconfig.PortItem(2, 18)
	failed := profile.Answer{State: profile.Failed, Problem: "status 5"}
	for name, tt := range map[string]struct {
		breakIt func(*profile.Card)
		want    []string
	}{
		"locked": {func(*profile.Card) {}, nil},
		"firewall off now": {
			func(c *profile.Card) { at(t, c, firewall).Current.Item.Data[0] = 0 },
			[]string{"SM_DISABLE differs-now blocks"},
		},
		"firewall off after the next reset": {
			func(c *profile.Card) { at(t, c, firewall).Next.Item.Data[0] = 0 },
			[]string{"SM_DISABLE differs-next blocks"},
		},
		"later priorities may override": {
			func(c *profile.Card) { at(t, c, firewall).Next.Item.OverrideEnabled = true },
			[]string{"SM_DISABLE overridable blocks"},
		},
		"priority of the host": {
			func(c *profile.Card) { at(t, c, firewall).Current.Item.Priority = nvconfig.User },
			[]string{"SM_DISABLE overridable blocks"},
		},
		"unknown priority": {
			func(c *profile.Card) { at(t, c, firewall).Current.Item.Priority = 2 },
			[]string{"SM_DISABLE overridable blocks"},
		},
		"firewall not supported": {
			func(c *profile.Card) { at(t, c, firewall).Support = profile.NotSupported },
			[]string{"SM_DISABLE not-supported blocks"},
		},
		"an optional setting not supported": {
			func(c *profile.Card) { at(t, c, nvconfig.GlobalItem(152)).Support = profile.NotSupported },
			[]string{"HOST_PRIV_RSHIM not-supported"},
		},
		"current value not readable": {
			func(c *profile.Card) { at(t, c, firewall).Current = failed },
			[]string{"SM_DISABLE unread blocks"},
		},
		"nobody asked": {
			func(c *profile.Card) { *at(t, c, firewall) = profile.Reading{Address: firewall} },
			[]string{"SM_DISABLE unread blocks", "SM_DISABLE unread blocks"},
		},
		"no reading": {
			func(c *profile.Card) {
				c.Readings = slices.DeleteFunc(c.Readings, func(r profile.Reading) bool { return r.Address == firewall })
			},
			[]string{"SM_DISABLE unread blocks", "SM_DISABLE unread blocks"},
		},
		"no such item is held": {
			func(c *profile.Card) { at(t, c, firewall).Next = profile.Answer{State: profile.Absent} },
			[]string{"SM_DISABLE unread blocks"},
		},
		"no alternate GUID is held": {
			func(c *profile.Card) {
				at(t, c, guid).Next, at(t, c, guid).Current = profile.Answer{State: profile.Absent}, profile.Answer{State: profile.Absent}
			},
			nil,
		},
		"alternate GUIDs not supported": {
			func(c *profile.Card) { at(t, c, guid).Support = profile.NotSupported },
			nil,
		},
		"alternate GUID of the second function": {
			func(c *profile.Card) { at(t, c, guid).Current.Item.Data[0] = 0x80 },
			[]string{"VIRTUAL_GUID_EN differs-now blocks"},
		},
		"second port is Ethernet": {
			func(c *profile.Card) { at(t, c, port2).Next.Item.Data[3] = 0x08 },
			[]string{"LINK_TYPE differs-next blocks"},
		},
		"locked to another board": {
			func(c *profile.Card) { at(t, c, nvconfig.GlobalItem(528)).Current.Item.Data[5] ^= 1 },
			[]string{"PSID_LOCK differs-now blocks"},
		},
		"what is recorded may be anything": {
			func(c *profile.Card) {
				r := at(t, c, nvconfig.GlobalItem(289))
				r.Current.Item.Data, r.Next = []byte{0xFF, 0xFF, 0xFF, 0xFF}, failed
			},
			[]string{"RDE_DISABLE unread", "PLDM_FW_UPDATE_DISABLE unread", "MCTP_I3C_DISABLE unread", "RBT_DISABLE unread", "PCIE_SMBUS_DISABLE unread", "PCIE_IN_BAND_VDM_DISABLE unread"},
		},
		"answer to another question": {
			func(c *profile.Card) { at(t, c, firewall).Next.Item.Address = nvconfig.GlobalItem(291) },
			[]string{"SM_DISABLE malformed blocks"},
		},
		"current value for the next": {
			func(c *profile.Card) { at(t, c, firewall).Next.Item.Access = nvconfig.Current },
			[]string{"SM_DISABLE malformed blocks"},
		},
		"short answer": {
			func(c *profile.Card) { at(t, c, firewall).Next.Item.Data = nil },
			[]string{"SM_DISABLE malformed blocks"},
		},
	} {
		c := locked(t, p, profile.SignedFile)
		tt.breakIt(&c)
		r := p.Judge(c, profile.SignedFile)
		got := found(r)
		if d := cmp.Diff(got, append([]string{}, tt.want...)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		blocks := strings.Contains(strings.Join(got, "\n"), "blocks")
		if r.Compliant() == blocks {
			t.Errorf("%s: compliant %v", name, r.Compliant())
		}
	}
}

// TestJudgePlainWrites: with plain writes nothing holds a setting but MLOCK, and
// the report says so of each.
func TestJudgePlainWrites(t *testing.T) {
	p := profile.Default()
	r := p.Judge(locked(t, p, profile.PlainWrites), profile.PlainWrites)
	if !r.Compliant() || len(r.Findings) == 0 {
		t.Fatalf("%q", found(r))
	}
	for _, f := range r.Findings {
		if f.Code != profile.CodeOverridable || f.Blocks || !strings.Contains(f.Text, "MLOCK") {
			t.Errorf("%+v", f)
		}
	}
	if p.Judge(locked(t, p, profile.PlainWrites), profile.SignedFile).Compliant() {
		t.Error("plain writes pass for a signed file")
	}
}

// TestJudgeIsDeterministic: the order of readings means nothing.
func TestJudgeIsDeterministic(t *testing.T) {
	p := profile.Default()
	c := locked(t, p, profile.SignedFile)
	at(t, &c, nvconfig.GlobalItem(290)).Current.Item.Data[0] = 0
	at(t, &c, nvconfig.PortItem(1, 18)).Next.Item.OverrideEnabled = true
	want := p.Judge(c, profile.SignedFile)
	slices.Reverse(c.Readings)
	if d := cmp.Diff(p.Judge(c, profile.SignedFile), want); d != "" || len(want.Findings) != 2 {
		t.Errorf("%q\n%s", found(want), d)
	}
	if v := want.Values[0]; v.Parameter != "SM_DISABLE" || v.Default != "False" || v.Current != "False" || v.Next != "True" || v.Priority != nvconfig.OEM || v.OverrideEnabled {
		t.Errorf("%+v", v)
	}
}

// TestNothingRead checks that a card that could not be read does not comply.
func TestNothingRead(t *testing.T) {
	if r := profile.Default().Judge(profile.Card{}, profile.SignedFile); r.Compliant() {
		t.Error("a card that was not read complies")
	}
}

// TestValidBit checks that a value that the card ignores is not the wanted one.
func TestValidBit(t *testing.T) {
	p, err := profile.Load([]byte(site))
	if err != nil {
		t.Fatal(err)
	}
	c := locked(t, p, profile.SignedFile)
	if r := p.Judge(c, profile.SignedFile); !r.Compliant() {
		t.Fatalf("%q", found(r))
	}
	at(t, &c, nvconfig.GlobalItem(128)).Current.Item.Data[0] &^= 0x80
	if got := found(p.Judge(c, profile.SignedFile)); !slices.Equal(got, []string{"NUM_OF_VFS differs-now blocks"}) {
		t.Errorf("%q", got)
	}
}

// TestItemsTakeNothingFromTenants checks that parts that no rule sets come from the factory's value, or that the item is
// not made.
func TestItemsTakeNothingFromTenants(t *testing.T) {
	p := profile.Default()
	c := locked(t, p, profile.SignedFile)
	pci := nvconfig.GlobalItem(128)
	for i := range at(t, &c, pci).Next.Item.Data {
		at(t, &c, pci).Next.Item.Data[i], at(t, &c, pci).Current.Item.Data[i] = 0xFF, 0xFF
	}
	pick := func(items []nvconfig.Item) (nvconfig.Item, bool) {
		i := slices.IndexFunc(items, func(i nvconfig.Item) bool { return i.Address == pci })
		if i < 0 {
			return nvconfig.Item{}, false
		}
		return items[i], true
	}
	items, _ := p.Items(c, profile.SignedFile)
	if i, ok := pick(items); !ok || !bytes.Equal(i.Data, []byte{0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x80}) {
		t.Errorf("nv_global_pci_conf: %x", i.Data)
	}
	at(t, &c, pci).Default = profile.Answer{}
	items, left := p.Items(c, profile.SignedFile)
	if i, ok := pick(items); ok {
		t.Errorf("made without the factory's value: %x", i.Data)
	}
	if len(left) != 1 || left[0].Parameter != "INTERNAL_CPU_RSHIM" || !strings.Contains(left[0].Why, "also has other settings") {
		t.Errorf("left: %v", left)
	}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// TestFile makes the file that a service signs for one card, and reads it as the
// card does.
func TestFile(t *testing.T) {
	p := profile.Default()
	c := locked(t, p, profile.SignedFile)
	at(t, &c, nvconfig.GlobalItem(21)).Support = profile.NotSupported
	challenge := nvconfig.Challenge{Device: [8]byte{2}, Nonce: [32]byte{3}}
	order := profile.Order{Card: c, Version: 8, Time: noon, Key: nvconfigtest.KeyUUID, Signer: nvconfigtest.Key(t, 4096)}
	b, left, err := p.File(order)
	if err != nil || len(left) != 1 || left[0].Parameter != "DPA_AUTHENTICATION" {
		t.Fatalf("%v, left %v", err, left)
	}
	f, err := nvconfig.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Verify([]nvconfig.PinnedKey{nvconfigtest.Pinned(t, 4096)}); err != nil {
		t.Error(err)
	}
	id, err := nvconfig.FileIDOf(f.Items[0])
	if err != nil || id != (nvconfig.FileID{KeepSame: true, Version: 8, Time: noon}) || !slices.Equal(f.PSIDs(), []string{"TST0000000001"}) {
		t.Errorf("%+v for %q, %v", id, f.PSIDs(), err)
	}
	for _, i := range f.Settings() {
		if !i.Locked() || i.Priority != nvconfig.OEM {
			t.Errorf("%v: priority %v, ovr_en %v", i.Address, i.Priority, i.OverrideEnabled)
		}
	}
	if again, _, err := p.File(order); err != nil || !bytes.Equal(again, b) {
		t.Errorf("the same order makes another file: %v", err)
	}

	order.Card.Device, order.Challenge = [32]byte{9}, &challenge
	if b, _, err = p.File(order); err != nil {
		t.Fatal(err)
	}
	if f, err = nvconfig.Parse(b); err != nil {
		t.Fatal(err)
	}
	got, err := nvconfig.ChallengesOf(f.Items[2])
	if err != nil || !slices.Equal(f.DeviceIDs(), [][32]byte{{9}}) || f.PSIDs() != nil || !cmp.Equal(got, []nvconfig.Challenge{challenge}) {
		t.Errorf("for %x and %q, challenges %v, %v", f.DeviceIDs(), f.PSIDs(), got, err)
	}
}

func TestFileRefuses(t *testing.T) {
	p := profile.Default()
	for name, tt := range map[string]struct {
		change func(*profile.Order)
		want   string
	}{
		"no version": {func(o *profile.Order) { o.Version = 0 }, "version and time"},
		"no time":    {func(o *profile.Order) { o.Time = time.Time{} }, "version and time"},
		"for anybody": {
			func(o *profile.Order) { o.Card.PSID = "" }, "no PSID",
		},
		"hostile PSID": {func(o *profile.Order) { o.Card.PSID = "MT\x1b[2J" }, "printable ASCII"},
		"the firewall is not there": {
			func(o *profile.Order) { at(t, &o.Card, nvconfig.GlobalItem(290)).Support = profile.NotSupported },
			"SM_DISABLE is required, but not in the file",
		},
		"no key": {func(o *profile.Order) { o.Key = nvconfig.UUID{} }, "no UUID"},
	} {
		o := profile.Order{Card: locked(t, p, profile.SignedFile), Version: 8, Time: noon, Key: nvconfigtest.KeyUUID, Signer: nvconfigtest.Key(t, 2048)}
		tt.change(&o)
		if b, _, err := p.File(o); err == nil || b != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// FuzzLoad checks that a file can be made from each accepted profile. Otherwise a required setting must be named that an
// unread card's file cannot have.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(site))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := profile.Load(b)
		if err != nil {
			return
		}
		if _, _, err := p.Unsigned(profile.Order{Card: profile.Card{PSID: "X"}, Version: 1, Time: noon}); err != nil && !strings.Contains(err.Error(), "required") {
			t.Fatal(err)
		}
	})
}
