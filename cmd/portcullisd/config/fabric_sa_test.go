package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/path"
	services "portcullis/fabricsm/sa/service"
)

// saOf returns the configuration of subnet administration by a configuration file, whose files are in its directory.
func saOf(t *testing.T, text string, files map[string]string) (sa.Config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Parse(filepath.Join(dir, "portcullisd.yaml"), []byte(text))
	if err != nil {
		return sa.Config{}, err
	}
	core, err := c.Fabric.Core(c.Path)
	if err != nil {
		return sa.Config{}, err
	}
	return c.Fabric.SA.read(&core, c.Fabric.QoS.policy, c.Path)
}

// An empty configuration sets what the agent does anyway, except for a quota of groups.
func TestSADefaultsAreTheAgents(t *testing.T) {
	t.Parallel()
	got, err := saOf(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := sa.DefaultConfig()
	want.Paths = path.Config{PacketLifeTime: 18, MaxRate: 63}
	want.Groups = group.Config{PacketLifeTime: 18, MaxRate: 63}
	want.Services = services.Config{MaxLease: 7 * 24 * time.Hour}
	want.Inform = inform.Config{MaxQueued: 65536, MaxOnWire: 512}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(group.Config{}, "Quota"), cmpopts.IgnoreFields(sa.Config{}, "Key")); d != "" {
		t.Errorf("defaults (-agent +configured):\n%s", d)
	}
	if n := got.Groups.Quota(0x8001); n != 8192 {
		t.Errorf("a partition may have %d groups", n)
	}
}

// TestSASection: every key reaches the agent.
func TestSASection(t *testing.T) {
	t.Parallel()
	got, err := saOf(t, `fabric:
  ports: {prefix: "0xfec0000000000007", subnet_timeout: 17}
  sa:
    key_file: key
    sa_enhanced_trust_model: false
    sa_etm_allow_untrusted_guidinfo_rec: true
    sa_etm_allow_guidinfo_rec_by_vf: true
    sa_etm_allow_untrusted_proxy_requests: true
    sa_etm_max_num_mcgs: 1
    sa_etm_max_num_srvcs: 2
    sa_etm_max_num_event_subs: 3
    sa_rate_threshold: 4
    sa_check_sgid_spoofing: false
    service_name2key_map_file: names
    sa_reserved_service_names: [A., B.]
    sa_key_update: 48h
    sa_key_grace: 2h
    sa_trusted_guids: [0x10, 0x11]
    sa_pr_full_world_queries_allowed: true
    max_rate_enum: 18
    prefix_routes_file: routes
    ipoib_mcgroup_creation_validation: false
    mcgroup_join_validation: false
    consolidate_ipv6_snm_req: true
    partition_mcgs: 5
    service_max_lease: 6h
    drop_event_subscriptions: true
    max_sa_reports_queued: 20
    max_sa_reports_on_wire: 21
    drop_subscr_on_report_fail: true
    limits:
      requests: {all: 7000/s burst 2000, node: 8/s burst 9}
      others: {all: unlimited, node: 10/s burst 11}
      work: {per_request: 12, node: 13/s burst 14}
`, map[string]string{
		"key": "0x8f3ac91d27b6e504\n", "names": "db 1111:2222:3333:4444:5555:6666:7777:8888\n", "routes": "0xfec0000000000001 0x20\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := sa.DefaultConfig()
	want.Subnet = 0xfec0000000000007
	o := &want.Trust
	o.Model, o.AliasesUntrusted, o.AliasesByAlias, o.ProxyUntrusted, o.CheckSGID = false, true, true, true, false
	o.MaxGroups, o.MaxServices, o.MaxSubscriptions, o.Threshold = 1, 2, 3, 4
	o.ReservedNames, o.KeyPeriod, o.KeyGrace, o.TrustedSources = []string{"A.", "B."}, 48*time.Hour, 2*time.Hour, []ib.GUID{0x10, 0x11}
	o.ServiceKeyFile = "names"
	want.Paths = path.Config{PacketLifeTime: 17, MaxRate: 18, FullWorld: true, Routes: []path.PrefixRoute{{Prefix: 0xfec0000000000001, Router: 0x20}}}
	want.Groups = group.Config{PacketLifeTime: 17, MaxRate: 18, NoIPoIBValidation: true, NoJoinValidation: true, ShareSNM: true}
	want.Services = services.Config{MaxLease: 6 * time.Hour, DropWithPort: true}
	want.Inform = inform.Config{MaxQueued: 20, MaxOnWire: 21, DropOnFail: true, Linger: -1}
	want.Limiter.Administration = limiter.LaneConfig{All: limiter.Allowance{Rate: 7000, Burst: 2000}, Node: limiter.Allowance{Rate: 8, Burst: 9}}
	want.Limiter.Other = limiter.LaneConfig{Node: limiter.Allowance{Rate: 10, Burst: 11}}
	want.Limiter.Work = limiter.WorkConfig{PerRequest: 12, Node: limiter.Allowance{Rate: 13, Burst: 14}}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(group.Config{}, "Quota"), cmpopts.IgnoreFields(sa.Config{}, "Key", "ServiceKeys")); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
	if got.Key.Reveal() != 0x8f3ac91d27b6e504 || got.ServiceKeys.Len() != 1 || got.Groups.Quota(0x8001) != 5 {
		t.Errorf("key %v, %d names with a key, %d groups in a partition", got.Key, got.ServiceKeys.Len(), got.Groups.Quota(0x8001))
	}
	if _, err := sa.New(got); err != nil {
		t.Error(err)
	}
}

// TestSAOptionsFile: a whole opensm.conf can be named. It counts before the keys, and values in it that make no sense are
// reported with their line.
func TestSAOptionsFile(t *testing.T) {
	t.Parallel()
	const text = "fabric: {sa: {options: opensm.conf, sa_etm_max_num_mcgs: 7, max_rate_enum: 3, mcgroup_join_validation: false}}\n"
	got, err := saOf(t, text, map[string]string{"opensm.conf": `# OpenSM
sa_key 0x1234
sa_enhanced_trust_model FALSE
sa_key_update 90 # minutes
max_rate_enum 0x12
max_sa_reports_on_wire 9
drop_subscr_on_report_fail (null)
sa_pr_full_world_queries_allowed TRUE
consolidate_ipv6_snm_req	TRUE
prefix_routes_file /nowhere
routing_engine updn
`})
	if err != nil {
		t.Fatal(err)
	}
	if got.Trust.Model || got.Trust.KeyPeriod != 90*time.Minute || got.Paths.MaxRate != 18 || !got.Paths.FullWorld || !got.Groups.ShareSNM || got.Inform.MaxOnWire != 9 {
		t.Errorf("the file is not in force: %+v %+v %+v", got.Trust, got.Paths, got.Groups)
	}
	if got.Trust.MaxGroups != 7 || !got.Groups.NoJoinValidation || !got.Key.IsZero() || got.Paths.Routes != nil {
		t.Errorf("what the file does not say is changed: %+v %+v", got.Trust, got.Groups)
	}
	for body, want := range map[string]string{
		"sa_enhanced_trust_modell TRUE\n":                   "opensm.conf:1: option \"sa_enhanced_trust_modell\" is not known",
		"\nsa_rate_threshold many\n":                        "opensm.conf:2: sa_rate_threshold \"many\"",
		"max_rate_enum 64\n":                                "opensm.conf:1: max_rate_enum \"64\": want 2 to 63",
		"qos TRUE\nipoib_mcgroup_creation_validation off\n": "opensm.conf:2: ipoib_mcgroup_creation_validation \"off\": want TRUE or FALSE",
	} {
		if _, err := saOf(t, text, map[string]string{"opensm.conf": body}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "fabric.sa.options") {
			t.Errorf("%q: error %v, want %q", body, err, want)
		}
	}
}

// TestSAMistakes: every value that makes no sense is reported with its key and line.
func TestSAMistakes(t *testing.T) {
	t.Parallel()
	_, err := saOf(t, `fabric:
  sa:
    sa_etm_max_num_mcgs: -1
    sa_rate_threshold: 9999999
    sa_key_update: 3s
    sa_key_grace: 48h
    sa_trusted_guids: [0x0]
    sa_reserved_service_names: [""]
    max_rate_enum: 1
    partition_mcgs: 100000
    ipoib_mtu: 2000
    service_max_lease: 1s
    limits:
      requests: {all: 10/s burst 3}
`, nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for i, key := range []string{
		"sa_etm_max_num_mcgs", "sa_rate_threshold", "sa_key_update", "sa_key_grace", "sa_trusted_guids", "sa_reserved_service_names", "max_rate_enum",
		"partition_mcgs", "ipoib_mtu", "service_max_lease", "limits",
	} {
		if want := fmt.Sprintf("yaml:%d: fabric.sa.%s: ", i+3, key); !strings.Contains(err.Error(), want) {
			t.Errorf("no complaint %q in\n%v", want, err)
		}
	}
	for name, text := range map[string]string{
		"a missing map":    "fabric: {sa: {service_name2key_map_file: nowhere}}\n",
		"a missing file":   "fabric: {sa: {prefix_routes_file: nowhere}}\n",
		"a missing option": "fabric: {sa: {options: nowhere}}\n",
		"a missing key":    "fabric: {sa: {key_file: nowhere}}\n",
	} {
		if _, err := saOf(t, text, nil); err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := saOf(t, strings.Replace(text, "{sa: {", "{sa: {enabled: false, ", 1), nil); err == nil {
			t.Errorf("%s is not read when asked for", name)
		}
	}
	if _, err := saOf(t, "fabric: {sa: {key_file: key}}\n", map[string]string{"key": "0x1"}); err == nil || !strings.Contains(err.Error(), "what any tool tries first") {
		t.Errorf("the SA_Key 1: %v", err)
	}
}

// TestPolicyIsForPaths: a QoS policy reaches the part that answers for paths. Without that part it is reported to have no
// effect.
func TestPolicyIsForPaths(t *testing.T) {
	t.Parallel()
	policy := map[string]string{"policy": "qos-levels\nqos-level\nname: DEFAULT\nsl: 3\nend-qos-level\nend-qos-levels\n"}
	c, err := saOf(t, "fabric: {qos: {policy: policy}}\n", policy)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Paths.Policy; p == nil || c.Rules.Policy != p || !p.Levels()[0].HasSL || p.Levels()[0].SL != 3 {
		t.Errorf("policy of paths %v, of end ports %v", p, c.Rules.Policy)
	}
	for enabled, told := range map[bool]int{true: 0, false: 1} {
		f := Fabric{SA: SA{Enabled: enabled}, QoS: QoS{Policy: "policy", policy: c.Paths.Policy}}
		if got := f.Notices(); len(got) != told {
			t.Errorf("enabled %v: %q", enabled, got)
		}
	}
}
