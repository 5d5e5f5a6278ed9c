package movein_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/opensmconf/movein"
	"portcullis/fabricsm/opensmconf/verdict"
	"portcullis/fabricsm/strictyaml"
	"portcullis/packaging/testenv"
)

func plan(t *testing.T, files map[string]string) *movein.Plan {
	t.Helper()
	site := &movein.Site{Kind: movein.OpenSM, Files: make(map[string][]byte), Port: "umad:mlx5_0"}
	for name, text := range files {
		site.Files[name] = []byte(text)
	}
	p, err := movein.Make(site)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// file returns the text of a file of a plan.
func file(t *testing.T, p *movein.Plan, name string) string {
	t.Helper()
	for _, f := range p.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("the plan has no file %s", name)
	return ""
}

// items returns the items of a setting, a line each.
func items(p *movein.Plan, setting string) (lines []string) {
	for i := range p.Items {
		if it := &p.Items[i]; it.Setting == setting {
			lines = append(lines, it.Place()+" "+string(it.Verdict)+" "+it.Here())
		}
	}
	return lines
}

// TestDefaultsOfOpenSM: a site that changed no option of the real OpenSM loses none.
func TestDefaultsOfOpenSM(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "opensm.conf")
	if out, err := exec.CommandContext(t.Context(), testenv.Program(t, "opensm"), "--create-config", conf).CombinedOutput(); err != nil {
		t.Fatalf("opensm: %v\n%s", err, out)
	}
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	p := plan(t, map[string]string{"opensm.conf": string(text), "partitions.conf": "Default=0x7fff : ALL=limited, SELF=full;"})
	for i := range p.Items {
		if it := &p.Items[i]; it.Loses || it.Verdict == verdict.Unknown || it.Verdict == verdict.Unsupported || it.Verdict == "" {
			t.Errorf("%s %s: %s, %s", it.Place(), it.Setting, it.Verdict, it.Text)
		}
	}
	want := `# Made from the files of OpenSM; report.md says what became of each setting.
# portcullisd sm --config reads this file; a service has its own, with this section fabric.
fabric:
  port: "umad:mlx5_0"
  ports:
    # opensm.conf:86 force_link_speed
    link_speed: supported
    # opensm.conf:141 force_link_width
    link_width: supported
`
	if d := cmp.Diff(want, file(t, p, "portcullisd.yaml")); d != "" {
		t.Errorf("portcullisd.yaml (-want +got):\n%s", d)
	}
}

var rich = map[string]string{
	"opensm.conf": `# a site
guid 0x0002c90300a1b2c3
m_key 0x5eed0c0ffee01234
m_key_protection_level 1
m_key_lease_period 60
sm_key 0x5eed0c0ffee05678
sa_key 0x1
allowed_sm_guids 0x0002c90300a1b2c4,0x0002c90300a1b2c5
lmc 1
lmc 2
max_op_vls 3
force_link_speed 7
force_link_speed_ext 3
force_link_width 3
routing_engine lash,updn,no_fallback
root_guid_file /etc/opensm/roots
cn_guid_file /etc/opensm/missing
partition_config_file /etc/opensm/partitions.conf
qos TRUE
qos_max_vls 4
qos_ca_max_lanes 4
qos_policy_file /etc/opensm/qos-policy.conf
prefix_routes_file /etc/opensm/prefix-routes.conf
node_name_map_name /etc/opensm/names
sa_enhanced_trust_model FALSE
perfmgr TRUE
perfmgr_sweep_time_s 60
smkey 0x5eed0c0ffee0aaaa
sweep_on_trap true
part_enforce off
`,
	"partitions.conf": "Default=0x7fff,ipoib:ALL=limited,SELF=full;\nA=0x1,defmember=full:0x0002c90300a1b2c3,0x0002c90300a1b2c6=limited;\n",
	"guid2lid":        "0x0002c90300a1b2c3 0x0004 0x0007\n\n0x0002c90300a1b2c4 0x0005 0x0005\n\n",
	"guid2mkey":       "0x0002c90300a1b2c3 0x5eed0c0ffee01234\n\n",
	"neighbors":       "0x0002c90300a1b2c3:1 0x0002c90300a1b2d0:2\n\n",
	"roots":           "0x0002c90300a1b2d0\n",
	"names":           "0x0002c90300a1b2d0 \"leaf 1\"\n",
	"notes.txt":       "m_key is 0x5eed0c0ffee01234\n",
}

func TestRichSite(t *testing.T) {
	t.Parallel()
	p := plan(t, rich)
	want := `# Made from the files of OpenSM; report.md says what became of each setting.
# portcullisd sm --config reads this file; a service has its own, with this section fabric.
fabric:
  election:
    # opensm.conf:8 allowed_sm_guids
    allowed_sms: ["0x0002c90300a1b2c4", "0x0002c90300a1b2c5"]
  keys:
    # guid2mkey and its kin
    import: "keys"
    # m_key
    import_options: "keys/opensm.conf"
    # opensm.conf:5 m_key_lease_period
    m_key_lease_period: 60s
    # drawn for this move: keep it apart from the state, and back it up
    root: "keys.root"
  lids:
    # guid2lid
    guid2lid: "guid2lid"
  # opensm.conf:10 lmc
  lmc: 2
  port: "umad:mlx5_0"
  ports:
    # opensm.conf:12 force_link_speed
    link_speed: EDR
    # opensm.conf:14 force_link_width
    link_width: 4x
    # opensm.conf:11 max_op_vls
    max_vls: 4
  qos:
    # opensm.conf:19 qos
    enabled: true
    # qos_*
    options: "qos.conf"
  routing:
    # opensm.conf:15 routing_engine
    engine: "dfsssp,updn,no_fallback"
    # opensm.conf:16 root_guid_file
    root_guid_file: "files/roots"
  # opensm.conf:6 sm_key
  sm_key_file: "sm.key"
`
	if d := cmp.Diff(want, file(t, p, "portcullisd.yaml")); d != "" {
		t.Errorf("portcullisd.yaml (-want +got):\n%s", d)
	}
	for setting, want := range map[string]string{
		"lmc":                     "opensm.conf:9 not-needed ; opensm.conf:10 taken fabric.lmc: 2",
		"sa_key":                  "opensm.conf:7 unsafe fabric.sa.key_file",
		"m_key_protection_level":  "opensm.conf:4 unsafe fabric.keys.m_key_protection_level",
		"routing_engine":          `opensm.conf:15 unsupported fabric.routing.engine: "dfsssp,updn,no_fallback"`,
		"cn_guid_file":            "opensm.conf:17 unsupported fabric.routing.cn_guid_file",
		"qos_ca_max_lanes":        "opensm.conf:21 unknown fabric.qos.options",
		"qos_policy_file":         "opensm.conf:22 not-needed fabric.qos.policy",
		"perfmgr":                 "opensm.conf:26 unsupported ",
		"perfmgr_sweep_time_s":    "opensm.conf:27 not-needed ",
		"node_name_map_name":      "opensm.conf:24 unsupported ",
		"sa_enhanced_trust_model": "opensm.conf:25 changed fabric.sa.sa_enhanced_trust_model",
		"smkey":                   "opensm.conf:28 unknown ",
		"sweep_on_trap":           "opensm.conf:29 changed fabric.smps.trap_hold",
		"part_enforce":            "opensm.conf:30 unsafe fabric.enforcement",
		"member":                  "partitions.conf:2 unsupported ",
		"LID":                     "guid2lid:3 unknown ",
		"LIDs":                    `guid2lid taken fabric.lids.guid2lid: "guid2lid"`,
		"file":                    "notes.txt not-needed ",
	} {
		if got := strings.Join(items(p, setting), "; "); got != want {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
	if got, want := file(t, p, "qos.conf"), "qos TRUE\nqos_max_vls 4\n"; got != want {
		t.Errorf("qos.conf is %q, want %q", got, want)
	}
	if got := file(t, p, "partitions.conf"); !strings.Contains(got, "A=0x1,defmember=full:0x0002c90300a1b2c3;") {
		t.Errorf("partitions.conf is %q", got)
	}
	if got := file(t, p, "report.md"); !strings.Contains(got, "portcullis cluster create A --tenant TENANT --p-key 0x0001") {
		t.Errorf("report.md names no cluster for A:\n%s", got)
	}
}

// TestKeysAreInSecretFilesOnly: whatever else a plan says, no key is in it.
func TestKeysAreInSecretFilesOnly(t *testing.T) {
	t.Parallel()
	p := plan(t, rich)
	secret := 0
	for _, f := range p.Files {
		if has := strings.Contains(strings.ToLower(string(f.Data)), "5eed"); has != f.Secret && f.Name != "keys/neighbors" {
			t.Errorf("%s: a key in it: %v, secret: %v", f.Name, has, f.Secret)
		}
		if f.Secret {
			secret++
		}
	}
	if secret != 4 {
		t.Errorf("%d secret files, want guid2mkey, neighbors, the single M_Key and the SM_Key", secret)
	}
	for i := range p.Items {
		if it := &p.Items[i]; strings.Contains(it.Value+it.To+it.Text, "5eed") {
			t.Errorf("%s shows a key: %+v", it.Place(), *it)
		}
	}
	if !p.Root {
		t.Error("keys are taken over and no root is asked for")
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	p := plan(t, rich)
	open := p.Open()
	if strange := p.Accept([]string{"perfmgr", "partitions.conf:2", "perfmgrs"}); len(strange) != 1 || strange[0] != "perfmgrs" {
		t.Errorf("%q fit no item", strange)
	}
	if p.Open() != open-2 {
		t.Errorf("%d items are open after two of %d were accepted", p.Open(), open)
	}
	if got := file(t, p, "report.md"); !strings.Contains(got, "(accepted) error counters") {
		t.Errorf("the report does not say what was accepted:\n%s", got)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ options, speed, width string }{
		{"force_link_speed 15\nforce_link_speed_ext 31", "taken fabric.ports.link_speed: supported", ""},
		{"force_link_speed 7\nforce_link_speed_ext 31", "changed fabric.ports.link_speed: supported", ""},
		{"force_link_speed 15\nforce_link_speed_ext 7", "taken fabric.ports.link_speed: HDR", ""},
		{"force_link_speed 15\nforce_link_speed_ext 2", "changed fabric.ports.link_speed: EDR", ""},
		{"force_link_speed 7\nforce_link_speed_ext 30\nfdr10 2", "taken fabric.ports.link_speed: QDR", ""},
		{"force_link_speed 5\nforce_link_speed_ext 30", "changed fabric.ports.link_speed: FDR10", ""},
		{"force_link_speed 3\nforce_link_speed_ext 30", "taken fabric.ports.link_speed: DDR", ""},
		{"force_link_speed 0\nforce_link_speed_ext 0", "taken fabric.ports.link_speed: keep", ""},
		{"force_link_speed 99", "unknown fabric.ports.link_speed", ""},
		{"force_link_width 0", "", "taken fabric.ports.link_width: keep"},
		{"force_link_width 2", "", "changed fabric.ports.link_width: 4x"},
		{"force_link_width 19", "", "taken fabric.ports.link_width: 4x"},
		{"force_link_width 31", "", "taken fabric.ports.link_width: 12x"},
		{"force_link_width 32", "", "unknown fabric.ports.link_width"},
	} {
		p := plan(t, map[string]string{"opensm.conf": tt.options})
		for setting, want := range map[string]string{"force_link_speed": tt.speed, "force_link_width": tt.width} {
			if want != "" {
				want = "opensm.conf:1 " + want
			}
			if got := strings.Join(items(p, setting), ""); got != want {
				t.Errorf("%q: %q, want %q", tt.options, got, want)
			}
		}
	}
}

// TestNoPartitionFile: OpenSM makes all ports full members then, which is refused, and must not pass in silence.
func TestNoPartitionFile(t *testing.T) {
	t.Parallel()
	p := plan(t, map[string]string{"opensm.conf": "partition_config_file /etc/opensm/partitions.conf\n"})
	if got := strings.Join(items(p, "partitions"), ""); got != "partitions.conf unsafe " || p.Open() != 1 {
		t.Errorf("%q, %d open", got, p.Open())
	}
}

// TestSeeds: with a key for each port m_key is a seed, and no key that any device has.
func TestSeeds(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]string{
		"m_key 0x0":                "opensm.conf:1 unsafe fabric.keys.root",
		"m_key 0x5eed0c0ffee01234": `opensm.conf:1 changed fabric.keys.import_options: "keys/opensm.conf"`,
		"m_key 0x5eed0c0ffee01234\nm_key_per_port TRUE\n": "opensm.conf:1 not-needed fabric.keys.import",
		"m_key 0x0\nm_key_per_port TRUE\n":                "opensm.conf:1 not-needed fabric.keys.import",
		"m_key 0xffffffffffffffff":                        "opensm.conf:1 not-needed fabric.keys.import",
		"m_key 0x123456789abcdef01":                       "opensm.conf:1 unknown fabric.keys.import_options",
	} {
		if got := strings.Join(items(plan(t, map[string]string{"opensm.conf": options}), "m_key"), ""); got != want {
			t.Errorf("%q: %q, want %q", options, got, want)
		}
	}
}

func TestNothingToPlanFrom(t *testing.T) {
	t.Parallel()
	for _, files := range []map[string][]byte{nil, {"partitions.conf": nil}, {"opensm.conf": []byte("m_key \x00")}} {
		if p, err := movein.Make(&movein.Site{Kind: movein.OpenSM, Files: files}); err == nil {
			t.Errorf("%v: a plan of %d items", files, len(p.Items))
		}
	}
}

// FuzzMake: a plan of any files is whole. Its configuration is YAML, every item has a verdict, and no file is named twice.
func FuzzMake(f *testing.F) {
	f.Add(rich["opensm.conf"], rich["partitions.conf"], rich["guid2lid"], rich["guid2mkey"])
	f.Add("qos_policy_file \"p\"\nrouting_engine a,,b\ntopo_config_file guid2lid\ntopo_config_enabled TRUE", "x", "y", "z")
	f.Fuzz(func(t *testing.T, conf, partitions, lids, keys string) {
		site := &movein.Site{Kind: movein.OpenSM, Files: map[string][]byte{
			"opensm.conf": []byte(conf), "partitions.conf": []byte(partitions), "guid2lid": []byte(lids), "guid2mkey": []byte(keys),
		}}
		p, err := movein.Make(site)
		if err != nil {
			return
		}
		names := make(map[string]bool)
		for _, f := range p.Files {
			if names[f.Name] || strings.HasPrefix(f.Name, "/") || strings.Contains(f.Name, "..") {
				t.Errorf("file %q", f.Name)
			}
			names[f.Name] = true
			if f.Name == "portcullisd.yaml" {
				if _, err := strictyaml.Document(f.Name, f.Data, 1<<20); err != nil {
					t.Errorf("%v in:\n%s", err, f.Data)
				}
			}
		}
		for i := range p.Items {
			if it := &p.Items[i]; it.Verdict == "" || it.File == "" || it.Setting == "" {
				t.Errorf("%+v", *it)
			}
		}
		if strange := p.Accept([]string{"\x00"}); len(strange) != 1 {
			t.Errorf("%q", strange)
		}
	})
}

func ufmPlan(t *testing.T, gv, conf string, more map[string]string) *movein.Plan {
	t.Helper()
	site := &movein.Site{Kind: movein.UFM, Port: "umad:mlx5_0", Files: map[string][]byte{"opensm.conf": []byte(conf)}}
	if gv != "" {
		site.Files["gv.cfg"] = []byte(gv)
	}
	for name, text := range more {
		site.Files[name] = []byte(text)
	}
	p, err := movein.Make(site)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestUFM: gv.cfg overrides opensm.conf, and only its options about the fabric are judged.
func TestUFM(t *testing.T) {
	t.Parallel()
	gv := `[Server]
port = 8088
monitoring_mode = no
fabric_interface = ib0
[SubnetManager]
m_key_per_port = true
global_m_key_seed = 0x5eed0c0ffee01234
topoconfig_enabled = true
default_membership = full
new_option = 0x5eed0c0ffee05678
[Sharp]
sharp_enabled = false
`
	p := ufmPlan(t, gv, "m_key 0x0\nm_key_per_port FALSE\ntopo_config_enabled FALSE\n", map[string]string{
		"partitions.conf":          "Default=0x7fff : ALL=limited, SELF=full;",
		"partitions.conf.user_ext": "# none",
		"topoconfig.conf":          "0x0002c90300000100,1,0x0002c90300000011,1,Any,Active\n",
		"guid2mkey":                "0x0002c90300000011 0x5eed0c0ffee09999\n",
	})
	for setting, want := range map[string]string{
		"port":                "gv.cfg:2 not-needed ",
		"monitoring_mode":     "gv.cfg:3 not-needed ",
		"fabric_interface":    "gv.cfg:4 changed fabric.port",
		"m_key":               "opensm.conf:1 not-needed fabric.keys.import",
		"m_key_per_port":      "gv.cfg:6 not-needed fabric.keys.m_key_enable; opensm.conf:2 not-needed ",
		"global_m_key_seed":   "gv.cfg:7 not-needed fabric.keys.import",
		"topoconfig_enabled":  "gv.cfg:8 taken fabric.topology.mode: enforce",
		"topo_config_enabled": "opensm.conf:3 not-needed ",
		"default_membership":  "gv.cfg:9 unsafe ",
		"new_option":          "gv.cfg:10 unknown ",
		"sharp_enabled":       "gv.cfg:12 not-needed ",
		"topology":            `topoconfig.conf taken fabric.topology.file: "files/topoconfig.conf"`,
	} {
		if got := strings.Join(items(p, setting), "; "); got != want {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
	if got := file(t, p, "portcullisd.yaml"); !strings.Contains(got, "mode: enforce") || !strings.Contains(got, `import: "keys"`) {
		t.Errorf("portcullisd.yaml:\n%s", got)
	}
	if got := file(t, p, "report.md"); strings.Contains(got, "5eed") {
		t.Errorf("the report shows a key:\n%s", got)
	}
	if p.Open() != 2 {
		t.Errorf("%d items are open, want default_membership and new_option", p.Open())
	}
	without := ufmPlan(t, "", "", map[string]string{"partitions.conf": ""})
	if got := strings.Join(items(without, "file"), ""); got != "gv.cfg unknown " {
		t.Errorf("without gv.cfg: %q", got)
	}
	if _, err := movein.Make(&movein.Site{Kind: movein.UFM, Files: map[string][]byte{"opensm.conf": nil, "gv.cfg": []byte("no section = 1")}}); err == nil {
		t.Error("a gv.cfg without sections was taken")
	}
}
