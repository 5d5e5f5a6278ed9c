package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// Fabric is the section "fabric" of the configuration. The service and "portcullisd sm" share it; the options of the
// latter override it.
//
// Keys that belong together stand in a section of their own, in a file of its own (fabric_NAME.go). To add one: make its
// type with the methods of fabricSection, add a field here, a place in sections and in defaultFabric, and explain its keys
// in default.yaml, portcullisd.yaml(5), SMUsage and portcullisd(8). Tests detect what is forgotten.
type Fabric struct {
	Port        string        `yaml:"port"`
	Enforcement string        `yaml:"enforcement"`
	Takeover    string        `yaml:"takeover"` // Keep or Remove
	Priority    uint8         `yaml:"priority"`
	SMKeyFile   string        `yaml:"sm_key_file"`
	AttachedTo  string        `yaml:"attached_to"`
	LMC         uint8         `yaml:"lmc"`
	Timeout     time.Duration `yaml:"timeout"`
	AuditPeriod time.Duration `yaml:"audit_period"`
	LIDPeriod   time.Duration `yaml:"lid_period"` // 0: never
	Counters    time.Duration `yaml:"counter_period"`
	Mute        time.Duration `yaml:"mute_period"`
	Election    Election      `yaml:"election"`
	SMPs        SMPs          `yaml:"smps"`
	Ports       Ports         `yaml:"ports"`
	LIDs        LIDs          `yaml:"lids"`
	QoS         QoS           `yaml:"qos"`
	Health      Health        `yaml:"health"`
	Growth      Growth        `yaml:"growth"`
	Routing     Routing       `yaml:"routing"`
	Keys        Keys          `yaml:"keys"`
	Watch       Watch         `yaml:"watch"`
	Sight       Sight         `yaml:"sight"`
	PortCounts  Counters      `yaml:"counters"`
	Topology    Topology      `yaml:"topology"`
	SA          SA            `yaml:"sa"`
}

// What the service does at its first takeover of a fabric with P_Keys of tenants that no record explains.
const (
	Keep   = "keep"   // ports have them until a person decides
	Remove = "remove" // they are removed
)

// fabricSection is a part of Fabric.
type fabricSection interface {
	// check finds values that make no sense. key is that of the section, such
	// as "fabric.ports"; problems are reported for keys below it.
	check(k *checker, key string)
	// flags adds the options of "portcullisd sm" that set keys of the section.
	flags(f *smFlags, key string)
	// apply puts the section into the configuration of the core. Files are
	// read here, after check, under the name that path makes of theirs.
	apply(to *sm.Config, path func(string) string) error
}

// sections lists the sections with their keys, in the order in which problems
// are reported.
func (f *Fabric) sections() []namedSection {
	return []namedSection{
		{"fabric.election", &f.Election},
		{"fabric.smps", &f.SMPs},
		{"fabric.ports", &f.Ports},
		{"fabric.lids", &f.LIDs},
		{"fabric.qos", &f.QoS},
		{"fabric.health", &f.Health},
		{"fabric.growth", &f.Growth},
		{"fabric.routing", &f.Routing},
		{"fabric.keys", &f.Keys},
		{"fabric.watch", &f.Watch},
		{"fabric.sight", &f.Sight},
		{"fabric.counters", &f.PortCounts},
		{"fabric.topology", &f.Topology},
		{"fabric.sa", &f.SA},
	}
}

type namedSection struct {
	key string
	fabricSection
}

func defaultFabric() Fabric {
	return Fabric{
		Port: "ibsim:sim/", Enforcement: "verified", Takeover: Keep, Priority: 14,
		Timeout: 200 * time.Millisecond, AuditPeriod: 10 * time.Minute, LIDPeriod: 2 * time.Second, Mute: 30 * time.Second,
		Election: defaultElection(), SMPs: defaultSMPs(), Ports: defaultPorts(), Health: defaultHealth(),
		Growth: defaultGrowth(), Routing: defaultRouting(), Keys: defaultKeys(), Topology: defaultTopology(), Sight: defaultSight(), PortCounts: defaultCounters(), SA: DefaultSA(),
	}
}

// Core returns the configuration of the core, with all files read. Every problem is reported.
func (f *Fabric) Core(path func(string) string) (sm.Config, error) {
	c := sm.Config{Priority: f.Priority, LMC: ib.LMC(f.LMC), Enforcement: enforcements()[f.Enforcement], AuditPeriod: f.AuditPeriod, LIDPeriod: cmp.Or(f.LIDPeriod, -1)}
	c.Counters = sm.CountersConfig{Period: f.Counters, Mute: f.Mute}
	c.Growth = sm.DefaultConfig().Growth // has no keys
	var errs []error
	c.SMKey, errs = f.smKey(path)
	for _, s := range f.sections() {
		if err := s.apply(&c, path); err != nil {
			errs = append(errs, err)
		}
	}
	f.Keys.bindPlaces(&c)
	c.MKey.AttachedTo, _ = f.attachedTo() // was checked
	return c, errors.Join(errs...)
}

// attachedTo returns the node GUID of the switch that the port is cabled to, 0 if the
// configuration does not say it.
func (f *Fabric) attachedTo() (ib.GUID, error) {
	if f.AttachedTo == "" {
		return 0, nil
	}
	guid, err := ib.ParseGUID(f.AttachedTo)
	if err == nil && !guid.Valid() {
		err = fmt.Errorf("GUID %q: no device has it", f.AttachedTo)
	}
	return guid, err
}

func (f *Fabric) smKey(path func(string) string) (ib.SMKey, []error) {
	if f.SMKeyFile == "" {
		return ib.SMKey{}, nil
	}
	file := path(f.SMKeyFile)
	var errs []error
	if err := input.CheckPrivate(file); err != nil {
		errs = append(errs, err)
	}
	key, err := loadSMKey(file)
	if err != nil {
		errs = append(errs, err)
	}
	return key, errs
}

// flags adds the options of "portcullisd sm" for all keys that have one.
func (f *Fabric) flags(to *smFlags) {
	to.text("port", "fabric.port", &f.Port)
	to.text("enforcement", "fabric.enforcement", &f.Enforcement)
	number(to, "priority", "fabric.priority", &f.Priority)
	to.text("sm-key-file", "fabric.sm_key_file", &f.SMKeyFile)
	to.text("attached-to", "fabric.attached_to", &f.AttachedTo)
	number(to, "lmc", "fabric.lmc", &f.LMC)
	to.duration("timeout", "fabric.timeout", &f.Timeout)
	to.duration("audit-period", "fabric.audit_period", &f.AuditPeriod)
	to.duration("lid-period", "fabric.lid_period", &f.LIDPeriod)
	to.duration("counter-period", "fabric.counter_period", &f.Counters)
	to.duration("mute-period", "fabric.mute_period", &f.Mute)
	for _, s := range f.sections() {
		s.flags(to, s.key)
	}
}

// fabric checks all but the port.
func (k *checker) fabric(f *Fabric) {
	if _, ok := enforcements()[f.Enforcement]; !ok {
		k.oneOf("fabric.enforcement", f.Enforcement, "verified", "accepted")
	}
	if f.Takeover != Keep && f.Takeover != Remove {
		k.oneOf("fabric.takeover", f.Takeover, Keep, Remove)
	}
	if f.Priority > 15 {
		k.wrong("fabric.priority", "%d: want 0 to 15", f.Priority)
	}
	if _, err := f.attachedTo(); err != nil {
		k.wrong("fabric.attached_to", "%v; want the node GUID of the switch that the port is cabled to", err)
	}
	if f.LMC > 7 {
		k.wrong("fabric.lmc", "%d: want 0 to 7", f.LMC)
	}
	k.between("fabric.timeout", f.Timeout, 10*time.Millisecond, time.Minute)
	k.between("fabric.audit_period", f.AuditPeriod, time.Second, 24*time.Hour)
	if f.LIDPeriod != 0 {
		k.between("fabric.lid_period", f.LIDPeriod, time.Second, 24*time.Hour)
	}
	if f.Counters != 0 {
		k.between("fabric.counter_period", f.Counters, time.Second, 24*time.Hour)
	}
	if f.Mute != 0 {
		k.between("fabric.mute_period", f.Mute, time.Second, 24*time.Hour)
	}
	for _, s := range f.sections() {
		s.check(k, s.key)
	}
}

// port checks fabric.port, which is of one of some kinds.
func (k *checker) port(s string, kinds ...string) {
	kind, _, _ := strings.Cut(s, ":")
	if !slices.Contains(kinds, kind) {
		k.wrong("fabric.port", "%q: want %s", s, fabricport.Forms(kinds))
	} else if err := fabricport.Check(s); err != nil {
		k.wrong("fabric.port", "%v", err)
	}
}

func enforcements() map[string]sm.Enforcement {
	return map[string]sm.Enforcement{"verified": sm.Verified, "accepted": sm.Accepted}
}

// within checks a number.
func within[T ~int | ~uint8 | ~uint16](k *checker, key string, v, least, most T) {
	if v < least || v > most {
		k.wrong(key, "%d: want %d to %d", v, least, most)
	}
}

// Administration returns the configuration of the agent, without partitions.
func (f *Fabric) Administration(core *sm.Config, path func(string) string) (sa.Config, error) {
	return f.SA.read(core, f.QoS.policy, path)
}

// Notices says what of the configuration is not done although it is no error.
func (f *Fabric) Notices() []string {
	out := slices.Concat(f.LIDs.told, f.QoS.told)
	if f.QoS.policy != nil && !f.SA.Enabled {
		out = append(out, "fabric.qos.policy: has no effect: its levels are for paths that subnet administration returns, and fabric.sa.enabled is false")
	}
	if f.Health.Noisy.Action > health.Ignore {
		out = append(out, "fabric.health.noisy: who sends too many traps is reported, and nothing else is done: traps can be sent in the name of others")
	}
	return out
}
