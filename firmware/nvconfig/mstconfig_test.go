package nvconfig_test

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"portcullis/firmware/nvconfig"
	"portcullis/packaging/testenv"
)

// toolNames are what mstconfig calls our parameters in XML, as far as the version
// that distributions ship knows their items.
var toolNames = map[string]string{
	"HOST_PRIV_LEVEL": "priv_level", "HOST_DISABLE_PORT_OWNER": "disable_port_owner", "HOST_DISABLE_PORT_COUNTER": "disable_counter_rd",
	"HOST_DISABLE_TRACER_OWNER": "disable_tracer", "HOST_DISABLE_RSHIM": "disable_rshim",
	"INTERNAL_CPU_RSHIM": "rshim_pf", "SRIOV_VALID": "sriov_valid", "SRIOV_EN": "sriov_en", "NUM_OF_VFS": "total_vfs",
	"VIRTUAL_GUID_EN": "virtual_guid_en", "VIRTUAL_GUID_ERASE_ON_POWERUP": "erase_on_powerup",
	"LINK_TYPE":          "default_link_type",
	"EXP_ROM_PXE_ENABLE": "exp_rom_pxe_enable", "EXP_ROM_UEFI_x86_ENABLE": "exp_rom_uefi_x86_enable", "P2P_ORDERING_MODE": "p2p_ordering_mode",
	"LEGACY_BOOT_PROTOCOL": "legacy_boot_protocol",
	"SAFE_MODE_ENABLE":     "safe_mode_enable", "SAFE_MODE_THRESHOLD": "safe_mode_threshold",
	"ICMD_SEM_LOCK_THRESHOLD": "icmd_sem_lock_threshold", "KEEP_IB_LINK_UP": "keep_ib_link_up", "SRIOV_IB_ROUTING_MODE": "sriov_ib_routing_mode",
	"FILE_ERASE_LOWER_PRIORITY": "erase_lower_priority", "FILE_VERSION": "file_version",
	"PSID": "psid", "PSID_BRANCH": "psid_branch",
}

// toolItem is an item as mstconfig explains it.
type toolItem struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Fields  []struct {
		XMLName xml.Name
		Text    string `xml:",chardata"`
	} `xml:",any"`
}

// explain has mstconfig read items in their text form.
func explain(t *testing.T, tool string, items []nvconfig.Item) []toolItem {
	t.Helper()
	dir := t.TempDir()
	raw, out := filepath.Join(dir, "items.raw"), filepath.Join(dir, "items.xml")
	if err := os.WriteFile(raw, []byte(nvconfig.FormatRaw(items)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(tool, "-y", "raw2xml", raw, out).CombinedOutput(); err != nil {
		t.Fatalf("mstconfig raw2xml: %v\n%s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Items []toolItem `xml:",any"`
	}
	if err := xml.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	return whole.Items
}

func (i toolItem) attr(name string) string {
	for _, a := range i.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// TestMstconfigAgrees puts random values into our fields, and has mstconfig say
// what it reads there: the places in the table are those of the vendor's tool.
func TestMstconfigAgrees(t *testing.T) {
	tool := testenv.Program(t, "mstconfig")
	random := rand.New(rand.NewPCG(7, 7))
	for range 4 {
		var items []nvconfig.Item
		for _, l := range nvconfig.Layouts() {
			if i, known := randomItem(t, random, l); known {
				items = append(items, i)
			}
		}
		got := explain(t, tool, items)
		if len(got) != len(items) || len(items) < 10 {
			t.Fatalf("mstconfig tells of %d items, want %d", len(got), len(items))
		}
		for n, i := range items {
			compare(t, i, got[n])
		}
	}
}

// compare compares mstconfig's output about an item with the values that we read in it.
func compare(t *testing.T, i nvconfig.Item, said toolItem) {
	t.Helper()
	l, _ := nvconfig.LayoutOf(i.Address)
	override := map[bool]string{false: "0", true: "1"}[i.OverrideEnabled]
	if said.XMLName.Local != l.Name || said.attr("ovr_en") != override || said.attr("writer_id") != strconv.Itoa(int(i.Writer)) {
		t.Errorf("%v: mstconfig says %s %v", i.Address, said.XMLName.Local, said.Attrs)
	}
	if l.Class == nvconfig.Port && said.attr("port") != strconv.Itoa(int(i.Address.Port())) {
		t.Errorf("%v: mstconfig says port %s", i.Address, said.attr("port"))
	}
	if l.Class == nvconfig.HostFunction && (said.attr("host") != "all" || said.attr("function") != "all") {
		t.Errorf("%v: mstconfig says host %s function %s", i.Address, said.attr("host"), said.attr("function"))
	}
	values := map[string]string{}
	for _, f := range said.Fields {
		values[f.XMLName.Local] = f.Text
	}
	for _, f := range l.Fields {
		name, ok := toolNames[f.Name]
		if !ok {
			continue
		}
		want, err := f.Format(i.Data)
		if err != nil || values[name] != want {
			t.Errorf("%s: mstconfig reads %s=%q, we %q, %v", f.Name, name, values[name], want, err)
		}
	}
}

// randomItem makes an item whose named fields have random values, if mstconfig
// knows it.
func randomItem(t *testing.T, random *rand.Rand, l nvconfig.Layout) (nvconfig.Item, bool) {
	t.Helper()
	address := nvconfig.Address(uint32(l.Class)<<24 | l.Index)
	switch l.Class {
	case nvconfig.Port:
		address = nvconfig.PortItem(uint8(1+random.IntN(2)), uint16(l.Index))
	case nvconfig.HostFunction:
		address = nvconfig.AllFunctionsItem(uint16(l.Index))
	}
	i := nvconfig.OEMItem(address, make([]byte, l.Size))
	i.OverrideEnabled, i.Writer = random.IntN(2) == 0, nvconfig.Writer(random.IntN(16))
	known := false
	for _, f := range l.Fields {
		if toolNames[f.Name] == "" {
			continue
		}
		known = true
		value := fmt.Sprint(random.Uint64() >> (64 - min(f.Width, 63)))
		switch f.Kind {
		case nvconfig.Enum:
			value = f.Values[random.IntN(len(f.Values))].Name
		case nvconfig.Text:
			value = strings.Repeat("AZ_09", 3)[:random.IntN(16)]
		}
		if err := f.Set(i.Data, value); err != nil {
			t.Fatal(err)
		}
	}
	return i, known
}
