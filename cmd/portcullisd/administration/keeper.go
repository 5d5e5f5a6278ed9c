// Package administration makes what answers hosts as subnet administration, and keeps it up with the configuration, and with
// partitions that come and go.
package administration

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"portcullis/api/fabric"
	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm"
)

// administered is what subnet administration is to know of partitions.
type administered struct {
	fixed   []group.Fixed
	names   map[ib.PKey]string // by base P_Key, for rules of quality of service
	sls     map[ib.PKey]ib.SL  // of their paths, by base P_Key
	tenants map[ib.PKey]string // their tenants, by base P_Key
}

// Keeper keeps what answers hosts up with the configuration and with partitions
// that come and go.
type Keeper struct {
	// settings holds the newest ones that the driver has not taken.
	Settings chan sa.Settings

	mu       sync.Mutex
	config   sa.Config      // as it was read, without partitions
	newest   *config.Fabric // that was read again; nil: none was
	sa       config.SA
	lifetime ib.ExpTime // of packets
	source   partitioning
	parts    administered // made of source
	aliases  alias.List   // by inventory, beside those of config
	decided  bool         // agent was called, and made one of config or none
	made     bool         // it made one
	waits    []string     // settings that were said to wait for a restart
	known    bool         // the agent knows which parts there are
	Awaits   bool         // partitions come from the store, later
	numbers  numbering
}

// partitioning says of partitions what subnet administration is to know.
type partitioning interface {
	administered(s *config.SA, lifetime ib.ExpTime) administered
}

// New returns a keeper that has made no agent.
func New() *Keeper {
	return &Keeper{Settings: make(chan sa.Settings, 1)}
}

// Agent creates the agent, nil if no request is to be answered. source makes SA_Keys if no file has one; nil: no requester
// is trusted then.
func (a *Keeper) Agent(f *config.Fabric, core *sm.Config, source keys.Source, path func(string) string) (*sa.Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest != nil {
		f = a.newest
	}
	a.decided, a.made, a.waits = true, f.SA.Enabled, nil
	if !a.made {
		return nil, nil
	}
	cfg, err := f.Administration(core, path)
	if err != nil {
		return nil, err
	}
	if err := seed(&cfg); err != nil {
		return nil, err
	}
	a.config = cfg
	a.describe(f, core)
	a.numbers, a.known = numbering{}, false
	cfg.Await = a.Awaits
	select {
	case <-a.Settings: // of the agent before
	default:
	}
	s := a.compose()
	cfg.Fixed, cfg.Rules, cfg.Paths, cfg.Aliases.Inventory = s.Fixed, s.Rules, s.Paths, s.Aliases
	cfg.Source, cfg.Tenant = source, a.tenant
	return sa.New(cfg)
}

// InUse returns the configuration that hosts are answered by, without partitions. It reports false if none are answered.
func (a *Keeper) InUse() (sa.Config, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config, a.made
}

// describe makes parts again. Called with mu held.
func (a *Keeper) describe(f *config.Fabric, core *sm.Config) {
	a.sa, a.lifetime = f.SA, core.Ports.SubnetTimeOut
	if a.source != nil {
		a.parts = a.source.administered(&a.sa, a.lifetime)
	}
}

// seed draws secrets that must not be predictable.
func seed(c *sa.Config) error {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("seeds for subnet administration: %w", err)
	}
	c.Rules.Seed, c.Paths.TraceKey = binary.BigEndian.Uint64(random[:8]), binary.BigEndian.Uint64(random[8:])
	return nil
}

// compose returns the settings. Called with mu held.
func (a *Keeper) compose() sa.Settings {
	s := a.config.Settings()
	s.Fixed, s.Rules.Partitions, s.Paths.Partitions = a.parts.fixed, a.parts.names, a.parts.sls
	list, _ := s.Aliases.(alias.List)
	if s.Aliases = nil; len(list)+len(a.aliases) > 0 {
		s.Aliases = list.With(a.aliases)
	}
	return s
}

// publish replaces the settings that the driver has not taken. Called with mu held.
func (a *Keeper) publish() {
	select {
	case <-a.Settings:
	default:
	}
	a.Settings <- a.compose()
}

// OnAliases takes which alias GUIDs the inventory lets ports have. Before partitions are known no request is answered.
func (a *Keeper) OnAliases(list alias.List) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if maps.EqualFunc(a.aliases, list, slices.Equal[[]ib.GUID]) {
		return
	}
	if a.aliases = list; a.known {
		a.publish()
	}
}

// Partition takes partitions that are others than before.
func (a *Keeper) Partition(of partitioning) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.source = of
	p := of.administered(&a.sa, a.lifetime)
	if a.known && reflect.DeepEqual(a.parts, p) {
		return
	}
	a.parts, a.known = p, true
	a.publish()
}

// configure takes a configuration that was read again. It returns the settings that wait for a restart, by their keys,
// unless they did so before.
func (a *Keeper) configure(f *config.Fabric, c *sa.Config, core *sm.Config) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newest = f
	a.describe(f, core)
	told := a.waits
	a.waits = nil
	switch {
	case !a.decided: // the first attachment takes all of it
	case a.made != f.SA.Enabled:
		a.waits = []string{"fabric.sa.enabled"}
	case a.made:
		a.waits = lasting(&a.config, c)
	}
	s := c.Settings()
	s.Rules.Seed, s.Paths.TraceKey = a.config.Rules.Seed, a.config.Paths.TraceKey
	a.config.Trust, a.config.ServiceKeys, a.config.Paths, a.config.Rules = s.Trust, s.ServiceKeys, s.Paths, s.Rules
	a.config.Aliases.Inventory, a.config.Limiter = s.Aliases, s.Limiter
	if a.known || !a.Awaits {
		a.publish()
	}
	if slices.Equal(told, a.waits) {
		return nil
	}
	return a.waits
}

// Reconfigure is configure, and reports the result.
func (a *Keeper) Reconfigure(f *config.Fabric, c *sa.Config, core *sm.Config, log *slog.Logger) {
	if waits := a.configure(f, c, core); waits != nil {
		log.Warn("subnet administration: what was read again is in force after a restart", "settings", waits)
	}
}

// lasting returns the keys of settings that are different and do not change while they are in force.
func lasting(was, is *sa.Config) []string {
	var keys []string
	for _, s := range []struct {
		key     string
		changed bool
	}{
		{"fabric.ports.prefix", was.Subnet != is.Subnet},
		{"fabric.ports.subnet_timeout", was.Groups.PacketLifeTime != is.Groups.PacketLifeTime},
		{"fabric.sa.key_file", was.Key != is.Key},
		{"fabric.sa.max_rate_enum", was.Groups.MaxRate != is.Groups.MaxRate},
		{"fabric.sa.ipoib_mcgroup_creation_validation", was.Groups.NoIPoIBValidation != is.Groups.NoIPoIBValidation},
		{"fabric.sa.mcgroup_join_validation", was.Groups.NoJoinValidation != is.Groups.NoJoinValidation},
		{"fabric.sa.consolidate_ipv6_snm_req", was.Groups.ShareSNM != is.Groups.ShareSNM},
		{"fabric.sa.partition_mcgs", was.Groups.Quota(ib.DefaultPKeyFull) != is.Groups.Quota(ib.DefaultPKeyFull)},
		{"fabric.sa.service_max_lease", was.Services.MaxLease != is.Services.MaxLease},
		{"fabric.sa.drop_event_subscriptions", was.Services.DropWithPort != is.Services.DropWithPort},
		{"fabric.sa.max_sa_reports_queued", was.Inform.MaxQueued != is.Inform.MaxQueued},
		{"fabric.sa.max_sa_reports_on_wire", was.Inform.MaxOnWire != is.Inform.MaxOnWire},
		{"fabric.sa.drop_subscr_on_report_fail", was.Inform.DropOnFail != is.Inform.DropOnFail},
	} {
		if s.changed {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// tenant returns the number of the tenant that an end port belongs to. It is the goroutine's that makes sights.
func (a *Keeper) tenant(e *portindex.EndPort) limiter.Tenant {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.numbers.of(e, a.parts.tenants)
}

// numbering numbers tenants in the order in which they are seen.
type numbering struct{ known map[string]limiter.Tenant }

const (
	ourselves limiter.Tenant = iota // switches, and full members of the default partition
	nobodys                         // hosts without a tenant
	firstTenant
)

// of returns the number of an end port: that of the first tenant that has a partition of it, otherwise of its first
// partition. P_Keys of an end port are those that the switch in front of it lets pass, so no host takes another's share.
// Beyond limiter.MaxTenants tenants share.
func (n *numbering) of(e *portindex.EndPort, tenants map[ib.PKey]string) limiter.Tenant {
	if e.Type == ib.NodeSwitch || slices.Contains(e.PKeys, ib.DefaultPKeyFull) {
		return ourselves
	}
	i := slices.IndexFunc(e.PKeys, func(k ib.PKey) bool { return k.Base() != ib.DefaultPKeyLimited })
	if i < 0 {
		return nobodys
	}
	name := "/" + e.PKeys[i].Base().String() // no name of a tenant has a slash
	for _, k := range e.PKeys {
		if t := tenants[k.Base()]; t != "" {
			name = t
			break
		}
	}
	t, ok := n.known[name]
	if !ok {
		if t = firstTenant + limiter.Tenant(len(n.known)); t >= limiter.MaxTenants {
			h := fnv.New32a()
			h.Write([]byte(name))
			return firstTenant + limiter.Tenant(h.Sum32()%uint32(limiter.MaxTenants-firstTenant))
		}
		if n.known == nil {
			n.known = make(map[string]limiter.Tenant)
		}
		n.known[name] = t
	}
	return t
}

// defaultName is what OpenSM calls the default partition in rules of quality of service.
const defaultName = "Default"

// PartitionFile is partitions of a partition file.
type PartitionFile conf.Rules

func (r *PartitionFile) administered(_ *config.SA, lifetime ib.ExpTime) administered {
	p := administered{names: map[ib.PKey]string{ib.DefaultPKeyLimited: defaultName}, sls: r.SLs}
	for i := range r.Partitions {
		p.names[r.Partitions[i].PKey.Base()] = r.Partitions[i].Name
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		f := group.IPoIB(g.PKey, g.Scope)
		if g.MGID != (ib.GID{}) {
			f.MGID = g.MGID
		}
		f.QKey, f.MTU, f.Rate, f.SL = g.QKey, g.MTU, g.Rate, g.SL
		f.TClass, f.FlowLabel, f.PacketLifeTime = g.TClass, g.FlowLabel, lifetime
		p.fixed = append(p.fixed, f)
	}
	return p
}

// Clusters are partitions of the store, by base P_Key. Each has an IPoIB broadcast group, if that is wanted. The default
// partition has none: its hosts are limited members, which do not communicate with each other.
type Clusters map[ib.PKey]fabric.Partition

func (clusters Clusters) administered(s *config.SA, lifetime ib.ExpTime) administered {
	p := administered{names: map[ib.PKey]string{ib.DefaultPKeyLimited: defaultName}, tenants: make(map[ib.PKey]string, len(clusters))}
	for _, k := range slices.Sorted(maps.Keys(clusters)) {
		p.names[k.Base()], p.tenants[k.Base()] = clusters[k].Cluster, clusters[k].Tenant
		if s.IPoIB {
			f := group.IPoIB(k, 0)
			f.MTU, f.PacketLifeTime = s.MTUOfIPoIB(), lifetime
			p.fixed = append(p.fixed, f)
		}
	}
	return p
}
