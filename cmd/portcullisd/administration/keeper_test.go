package administration

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm"
)

// TestPartitionFileOfAdministration: groups, names and service levels of a partition file reach subnet administration.
func TestPartitionFileOfAdministration(t *testing.T) {
	t.Parallel()
	r, err := conf.Parse("f", []byte("Default=0x7fff, ipoib : ALL=limited, SELF=full;\nA=0x101, ipoib, mtu=5, rate=7, sl=3 : 0x10=full;\nB=2 : mgid=ff15::1, Q_Key=9\n 0x11=full;"))
	if err != nil {
		t.Fatal(err)
	}
	got := (*PartitionFile)(r).administered(nil, 17)
	all, of, other := group.IPoIB(ib.DefaultPKeyFull, 0), group.IPoIB(0x8101, 0), group.IPoIB(0x8002, 0)
	all.PacketLifeTime, of.PacketLifeTime, other.PacketLifeTime = 17, 17, 17
	of.MTU, of.Rate, of.SL = ib.MTU4096, 7, 3
	other.MGID, other.QKey = ib.GID{0: 0xFF, 1: 0x15, 15: 1}, 9
	want := administered{
		fixed: []group.Fixed{all, of, other}, names: map[ib.PKey]string{0x7FFF: "Default", 0x101: "A", 2: "B"}, sls: map[ib.PKey]ib.SL{0x101: 3},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(administered{})); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}

// TestClustersOfAdministration: each cluster has a broadcast group, the default partition
// has none, and the driver gets the newest of what changed while it was busy.
func TestClustersOfAdministration(t *testing.T) {
	t.Parallel()
	s := config.DefaultSA()
	s.IPoIBMTU = 4096
	of := Clusters{0x12: {Cluster: "b", Tenant: "acme"}, 0x11: {Cluster: "a", Tenant: "acme"}, 0x20: {Cluster: "storage"}}
	got := of.administered(&s, 18)
	if len(got.fixed) != 3 || got.fixed[0].PKey != 0x8011 || got.fixed[0].MTU != ib.MTU4096 || got.fixed[1].MGID != group.Broadcast(0x8012, 2) {
		t.Errorf("groups: %+v", got.fixed)
	}
	if got.names[0x20] != "storage" || got.tenants[0x12] != "acme" || got.tenants[0x20] != "" {
		t.Errorf("names %v, tenants %v", got.names, got.tenants)
	}
	s.IPoIB = false
	if without := of.administered(&s, 18); without.fixed != nil {
		t.Errorf("without ipoib there are groups: %+v", without.fixed)
	}

	a := New()
	a.sa = config.DefaultSA()
	a.Partition(of)
	a.Partition(of) // nothing new
	more := Clusters{0x30: {Cluster: "c", Tenant: "umbrella"}}
	maps.Copy(more, of)
	a.Partition(more)
	if told := <-a.Settings; len(told.Fixed) != 4 || told.Rules.Partitions[0x30] != "c" {
		t.Errorf("the driver is told %+v", told.Fixed)
	}
	select {
	case <-a.Settings:
		t.Error("it is told twice")
	default:
	}
	a.Partition(more)
	if len(a.Settings) != 0 {
		t.Error("what did not change is told again")
	}
}

// TestTenantNumbers: clusters of a tenant share a number, hosts without one have theirs, and no host shares with the
// switches.
func TestTenantNumbers(t *testing.T) {
	t.Parallel()
	tenants := map[ib.PKey]string{0x11: "acme", 0x12: "acme", 0x13: "umbrella"}
	var n numbering
	host := func(keys ...ib.PKey) *portindex.EndPort { return &portindex.EndPort{Type: ib.NodeCA, PKeys: keys} }
	for _, tt := range []struct {
		name string
		port *portindex.EndPort
		want limiter.Tenant
	}{
		{"switch", &portindex.EndPort{Type: ib.NodeSwitch, PKeys: []ib.PKey{0x7FFF}}, ourselves},
		{"subnet manager", host(0x8011, 0xFFFF), ourselves},
		{"without a tenant", host(0x7FFF), nobodys},
		{"first", host(0x8011, 0x7FFF), firstTenant},
		{"another cluster", host(0x8012, 0x7FFF), firstTenant},
		{"second", host(0x8013, 0x7FFF), firstTenant + 1},
		{"shared partition first", host(0x0005, 0x8013, 0x7FFF), firstTenant + 1},
		{"a partition of nobody known", host(0x0005, 0x7FFF), firstTenant + 2},
		{"the same again", host(0x8011, 0x7FFF), firstTenant},
	} {
		if got := n.of(tt.port, tenants); got != tt.want {
			t.Errorf("%s: number %d, want %d", tt.name, got, tt.want)
		}
	}
	for k := range ib.PKey(3000) {
		if got := n.of(host(0x1000+k|0x8000, 0x7FFF), nil); got >= limiter.MaxTenants || got < firstTenant {
			t.Fatalf("partition %v: number %d", k, got)
		}
	}
}

// TestAdministrationReadsItsConfigurationAgain: changed settings are handed on, and those that wait for a restart are
// reported.
func TestAdministrationReadsItsConfigurationAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := filepath.Join(dir, "opensm.conf")
	load := func(text, opensm string) (*config.Config, sm.Config) {
		t.Helper()
		if err := os.WriteFile(options, []byte(opensm), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		core, err := c.Fabric.Core(c.Path)
		if err != nil {
			t.Fatal(err)
		}
		return c, core
	}
	const text = "fabric: {sa: {options: opensm.conf}}\n"
	a := New()
	c, core := load(text, "")
	if agent, err := a.Agent(&c.Fabric, &core, nil, c.Path); err != nil || agent == nil {
		t.Fatalf("agent %v: %v", agent, err)
	}
	again := func(text, opensm string) (waits []string) {
		t.Helper()
		c, core := load(text, opensm)
		next, err := c.Fabric.Administration(&core, c.Path)
		if err != nil {
			t.Fatal(err)
		}
		return a.configure(&c.Fabric, &next, &core)
	}
	if waits := again(text, "sa_rate_threshold 9\nsa_pr_full_world_queries_allowed TRUE\n"); waits != nil {
		t.Errorf("with a threshold, %v wait for a restart", waits)
	}
	if told := <-a.Settings; told.Trust.Threshold != 9 || !told.Paths.FullWorld {
		t.Errorf("the driver is told %+v", told)
	}
	if waits := again(text, "mcgroup_join_validation FALSE\n"); !slices.Equal(waits, []string{"fabric.sa.mcgroup_join_validation"}) {
		t.Errorf("for a restart wait %v, want a rule of groups", waits)
	}
	<-a.Settings
	if waits := again(text, "mcgroup_join_validation FALSE\n"); waits != nil {
		t.Errorf("what waits is told again: %v", waits)
	}
	if told := <-a.Settings; told.Trust.Threshold != 0 {
		t.Errorf("the driver is told %+v", told)
	}
	a.Partition(Clusters{0x11: {Cluster: "a"}})
	if told := <-a.Settings; len(told.Fixed) != 1 {
		t.Errorf("the driver is told of the groups %+v", told.Fixed)
	}
	if waits := again("fabric: {sa: {ipoib: false, limits: {changes: 7/s burst 9}}}\n", ""); waits != nil {
		t.Errorf("with groups of partitions and limits, %v wait for a restart", waits)
	}
	if told := <-a.Settings; len(told.Fixed) != 0 || told.Limiter.Changes != (limiter.Allowance{Rate: 7, Burst: 9}) {
		t.Errorf("the driver is told %+v", told)
	}
	again("fabric: {sa: {ipoib_mtu: 4096}}\n", "")
	if told := <-a.Settings; len(told.Fixed) != 1 || told.Fixed[0].MTU != ib.MTU4096 {
		t.Errorf("the driver is told of the groups %+v", told.Fixed)
	}
	next, _ := load("fabric: {sa: {ipoib: false}}\n", "")
	if _, err := a.Agent(&next.Fabric, &core, nil, next.Path); err != nil || a.config.Fixed != nil || len(a.parts.fixed) != 1 {
		t.Errorf("what is attached again has the groups %+v: %v", a.parts.fixed, err)
	}
	a = New()
	off, core := load("fabric: {sa: {enabled: false}}\n", "")
	if agent, err := a.Agent(&off.Fabric, &core, nil, off.Path); err != nil || agent != nil {
		t.Errorf("switched off there is the agent %v: %v", agent, err)
	}
	if waits := again("fabric: {sa: {enabled: false, service_max_lease: 1h}}\n", ""); waits != nil {
		t.Errorf("switched off, %v wait for a restart", waits)
	}
	if waits := again("fabric: {sa: {service_max_lease: 1h}}\n", ""); !slices.Equal(waits, []string{"fabric.sa.enabled"}) {
		t.Errorf("switched on, %v wait for a restart", waits)
	}
}

// administrationOf reads a configuration whose files stand in dir.
func administrationOf(t *testing.T, dir, text string) (*config.Config, sm.Config, sa.Config) {
	t.Helper()
	c, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	core, err := c.Fabric.Core(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	next, err := c.Fabric.Administration(&core, c.Path)
	if err != nil {
		t.Fatal(err)
	}
	return c, core, next
}

// TestWaitsForARestart: each setting that is in force only after a restart is named, and
// is not one that there is none of.
func TestWaitsForARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sa.key"), []byte("0x8f3ac91d27b6e504\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(text string) sa.Config {
		t.Helper()
		_, _, next := administrationOf(t, dir, text)
		return next
	}
	was, same := read(""), read("")
	if keys := lasting(&was, &same); keys != nil {
		t.Errorf("nothing changed, and %v wait", keys)
	}
	for key, value := range map[string]string{
		"ports.prefix": `"0xfec0000000000007"`, "ports.subnet_timeout": "17", "sa.key_file": "sa.key", "sa.max_rate_enum": "3",
		"sa.ipoib_mcgroup_creation_validation": "false", "sa.mcgroup_join_validation": "false", "sa.consolidate_ipv6_snm_req": "true",
		"sa.partition_mcgs": "5", "sa.service_max_lease": "1h", "sa.drop_event_subscriptions": "true",
		"sa.max_sa_reports_queued": "7", "sa.max_sa_reports_on_wire": "7", "sa.drop_subscr_on_report_fail": "true",
	} {
		section, name, _ := strings.Cut(key, ".")
		is := read("fabric: {" + section + ": {" + name + ": " + value + "}}\n")
		if keys := lasting(&was, &is); !slices.Equal(keys, []string{"fabric." + key}) {
			t.Errorf("fabric.%s changed, and %v wait", key, keys)
		}
	}
}

// TestAliasesOfAdministration: ports may have the alias GUIDs of the inventory and of the file. The driver receives them
// when partitions are known, and each change after that.
func TestAliasesOfAdministration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "aliases")
	load := func(text string) (*config.Config, sm.Config, sa.Config) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return administrationOf(t, dir, "fabric: {sa: {alias_guids_file: aliases}}\n")
	}
	a := New()
	a.Awaits = true
	c, core, next := load("")
	if _, err := a.Agent(&c.Fabric, &core, nil, c.Path); err != nil {
		t.Fatal(err)
	}
	a.OnAliases(alias.List{0x11: {0xA1}})
	if waits := a.configure(&c.Fabric, &next, &core); waits != nil || len(a.Settings) != 0 {
		t.Error("something is told before partitions are known")
	}
	a.Partition(Clusters{})
	told := func(want alias.List) {
		t.Helper()
		got, _ := (<-a.Settings).Aliases.(alias.List)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
	}
	told(alias.List{0x11: {0xA1}})
	a.OnAliases(alias.List{0x11: {0xA1}})
	if len(a.Settings) != 0 {
		t.Error("what did not change is told again")
	}
	c, core, next = load("0x11 0xA2\n0x12 0xB1\n")
	if waits := a.configure(&c.Fabric, &next, &core); waits != nil {
		t.Errorf("with the file, %v wait for a restart", waits)
	}
	told(alias.List{0x11: {0xA2, 0xA1}, 0x12: {0xB1}})
	a.OnAliases(nil)
	told(alias.List{0x11: {0xA2}, 0x12: {0xB1}})

	if err := os.WriteFile(file, []byte("0x11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fabric.Administration(&core, c.Path); err == nil || !strings.Contains(err.Error(), "fabric.sa.alias_guids_file: ") || !strings.Contains(err.Error(), "aliases:1: ") {
		t.Errorf("a port without aliases: %v", err)
	}
}
