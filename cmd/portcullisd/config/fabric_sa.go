package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// SA says how hosts are answered as subnet administration. Keys that OpenSM or
// UFM have too are called as theirs.
type SA struct {
	Enabled bool   `yaml:"enabled"`
	KeyFile string `yaml:"key_file"`
	Options string `yaml:"options"`

	Model            bool          `yaml:"sa_enhanced_trust_model"`
	AliasesUntrusted bool          `yaml:"sa_etm_allow_untrusted_guidinfo_rec"`
	AliasesByAlias   bool          `yaml:"sa_etm_allow_guidinfo_rec_by_vf"`
	ProxyUntrusted   bool          `yaml:"sa_etm_allow_untrusted_proxy_requests"`
	MaxGroups        int           `yaml:"sa_etm_max_num_mcgs"`
	MaxServices      int           `yaml:"sa_etm_max_num_srvcs"`
	MaxSubscriptions int           `yaml:"sa_etm_max_num_event_subs"`
	Threshold        int           `yaml:"sa_rate_threshold"`
	CheckSGID        bool          `yaml:"sa_check_sgid_spoofing"`
	ServiceKeyFile   string        `yaml:"service_name2key_map_file"`
	ReservedNames    []string      `yaml:"sa_reserved_service_names"`
	KeyUpdate        time.Duration `yaml:"sa_key_update"`
	KeyGrace         time.Duration `yaml:"sa_key_grace"`
	TrustedGUIDs     []ib.GUID     `yaml:"sa_trusted_guids"`

	FullWorld    bool    `yaml:"sa_pr_full_world_queries_allowed"`
	MaxRate      ib.Rate `yaml:"max_rate_enum"`
	PrefixRoutes string  `yaml:"prefix_routes_file"`
	AliasFile    string  `yaml:"alias_guids_file"`

	IPoIBValidation bool `yaml:"ipoib_mcgroup_creation_validation"`
	JoinValidation  bool `yaml:"mcgroup_join_validation"`
	ShareSNM        bool `yaml:"consolidate_ipv6_snm_req"`
	PartitionGroups int  `yaml:"partition_mcgs"`
	IPoIB           bool `yaml:"ipoib"`
	IPoIBMTU        int  `yaml:"ipoib_mtu"`

	MaxLease     time.Duration `yaml:"service_max_lease"`
	DropWithPort bool          `yaml:"drop_event_subscriptions"`

	ReportsQueued int  `yaml:"max_sa_reports_queued"`
	ReportsOnWire int  `yaml:"max_sa_reports_on_wire"`
	DropOnFail    bool `yaml:"drop_subscr_on_report_fail"`

	Limits saLimits `yaml:"limits"`
}

// saLimits bounds what hosts may cost.
type saLimits struct {
	Administration limiter.LaneConfig `yaml:"requests"`
	Other          limiter.LaneConfig `yaml:"others"`
	Work           limiter.WorkConfig `yaml:"work"`
	Changes        limiter.Allowance  `yaml:"changes"`
}

// DefaultSA returns the section without any key.
func DefaultSA() SA {
	d := sa.DefaultConfig()
	s := SA{
		Enabled: true, MaxRate: 63, IPoIBValidation: true, JoinValidation: true, PartitionGroups: 8192,
		IPoIB: true, IPoIBMTU: 2048, MaxLease: 7 * 24 * time.Hour,
		ReportsQueued: 1 << 16, ReportsOnWire: 512,
		Limits: saLimits{d.Limiter.Administration, d.Limiter.Other, d.Limiter.Work, d.Limiter.Changes},
	}
	s.setTrust(&d.Trust)
	return s
}

// trust returns the options of the trust model.
func (s *SA) trust() trust.Options {
	return trust.Options{
		Model: s.Model, AliasesUntrusted: s.AliasesUntrusted, AliasesByAlias: s.AliasesByAlias, ProxyUntrusted: s.ProxyUntrusted,
		MaxGroups: s.MaxGroups, MaxServices: s.MaxServices, MaxSubscriptions: s.MaxSubscriptions,
		Threshold: s.Threshold, CheckSGID: s.CheckSGID, ServiceKeyFile: s.ServiceKeyFile, ReservedNames: s.ReservedNames,
		KeyPeriod: s.KeyUpdate, KeyGrace: s.KeyGrace, TrustedSources: s.TrustedGUIDs,
	}
}

func (s *SA) setTrust(o *trust.Options) {
	s.Model, s.AliasesUntrusted, s.AliasesByAlias, s.ProxyUntrusted = o.Model, o.AliasesUntrusted, o.AliasesByAlias, o.ProxyUntrusted
	s.MaxGroups, s.MaxServices, s.MaxSubscriptions = o.MaxGroups, o.MaxServices, o.MaxSubscriptions
	s.Threshold, s.CheckSGID, s.ServiceKeyFile, s.ReservedNames = o.Threshold, o.CheckSGID, o.ServiceKeyFile, o.ReservedNames
	s.KeyUpdate, s.KeyGrace, s.TrustedGUIDs = o.KeyPeriod, o.KeyGrace, o.TrustedSources
}

// limiter returns the limits of incoming requests. Requests of the Subnet Manager's own protocol come another way.
func (s *SA) limiter() limiter.Config {
	c := limiter.DefaultConfig()
	c.Administration, c.Other, c.Work, c.Changes = s.Limits.Administration, s.Limits.Other, s.Limits.Work, s.Limits.Changes
	return c
}

const (
	maxPartitionGroups = 1 << 16
	maxReports         = 1 << 20
	minLease, maxLease = time.Minute, 366 * 24 * time.Hour
)

func (s *SA) check(k *checker, key string) {
	o := s.trust()
	for _, text := range joinedLines(o.Check()) {
		name, why, _ := strings.Cut(text, " ")
		k.wrong(key+"."+strings.TrimSuffix(name, ":"), "%s", why)
	}
	within(k, key+".max_rate_enum", s.MaxRate, ib.Rate2_5, 63)
	within(k, key+".partition_mcgs", s.PartitionGroups, 1, maxPartitionGroups)
	k.between(key+".service_max_lease", s.MaxLease, minLease, maxLease)
	if s.MTUOfIPoIB() == 0 {
		k.wrong(key+".ipoib_mtu", "%d: want 256, 512, 1024, 2048 or 4096", s.IPoIBMTU)
	}
	within(k, key+".max_sa_reports_queued", s.ReportsQueued, 1, maxReports)
	within(k, key+".max_sa_reports_on_wire", s.ReportsOnWire, 1, maxReports)
	if s.MaxLease%time.Second != 0 {
		k.wrong(key+".service_max_lease", "%v: want whole seconds", s.MaxLease)
	}
	limits := s.limiter()
	for _, text := range joinedLines(limits.Check()) {
		k.wrong(key+".limits", "%s", strings.TrimPrefix(text, "limiter: "))
	}
}

// MTUOfIPoIB returns the code of ipoib_mtu, 0 if there is none.
func (s *SA) MTUOfIPoIB() ib.MTU {
	for m := ib.MTU256; m <= ib.MTU4096; m++ {
		if m.Bytes() == s.IPoIBMTU {
			return m
		}
	}
	return 0
}

// joinedLines returns the errors that were joined.
func joinedLines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func (s *SA) flags(f *smFlags, key string) {
	f.truth("sa", key+".enabled", &s.Enabled)
	f.text("sa-key-file", key+".key_file", &s.KeyFile)
	f.text("sa-options", key+".options", &s.Options)
	f.truth("sa-enhanced-trust-model", key+".sa_enhanced_trust_model", &s.Model)
	f.text("service-name2key-map-file", key+".service_name2key_map_file", &s.ServiceKeyFile)
	f.text("prefix-routes-file", key+".prefix_routes_file", &s.PrefixRoutes)
}

// apply only reads the files, so that their faults are reported at once.
func (s *SA) apply(to *sm.Config, path func(string) string) error {
	if !s.Enabled {
		return nil
	}
	_, err := s.read(to, nil, path)
	return err
}

// keyFile reads the SA_Key, the zero one if there is none.
func (s *SA) keyFile(path func(string) string) (ib.SAKey, error) {
	if s.KeyFile == "" {
		return ib.SAKey{}, nil
	}
	file := path(s.KeyFile)
	key, err := loadSMKey(file)
	if err := errors.Join(input.CheckPrivate(file), err); err != nil {
		return ib.SAKey{}, fmt.Errorf("SA_Key: %w", err)
	}
	if key.Reveal() <= 1 {
		return ib.SAKey{}, fmt.Errorf("SA_Key in %s: 0 means no key, and 1 is what any tool tries first; draw one: openssl rand -hex 8", file)
	}
	if err := keys.Check(keys.New(key.Reveal())); err != nil {
		return ib.SAKey{}, fmt.Errorf("SA_Key in %s: %w", file, err)
	}
	return ib.NewSAKey(key.Reveal()), nil
}

// read returns the configuration of the agent, with all files read. policy assigns paths their levels, nil: none.
func (s *SA) read(core *sm.Config, policy *qos.Policy, file func(string) string) (sa.Config, error) {
	c := sa.DefaultConfig()
	c.Subnet, c.Limiter = core.Prefix, s.limiter()
	effective, err := s.withOptions(file)
	if err != nil {
		return c, err
	}
	s = effective
	var errs []error
	if c.Key, err = s.keyFile(file); err != nil {
		errs = append(errs, err)
	}
	c.Trust = s.trust()
	if s.ServiceKeyFile != "" {
		name := file(s.ServiceKeyFile)
		data, err := readBounded("service keys", name, trust.MaxServiceKeysSize)
		if err := errors.Join(input.CheckPrivate(name), err); err != nil {
			errs = append(errs, fmt.Errorf("fabric.sa.service_name2key_map_file: %w", err))
		} else if c.ServiceKeys, err = trust.ParseServiceKeys(name, data); err != nil {
			errs = append(errs, err)
		}
	}
	c.Paths.PacketLifeTime, c.Paths.MaxRate, c.Paths.FullWorld = core.Ports.SubnetTimeOut, s.MaxRate, s.FullWorld
	c.Paths.QoS, c.Paths.Policy, c.Rules.Policy = core.QoS, policy, policy
	if s.PrefixRoutes != "" {
		name := file(s.PrefixRoutes)
		data, err := readBounded("prefix routes", name, path.MaxRoutesSize)
		if err == nil {
			c.Paths.Routes, err = path.ParseRoutes(name, data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("fabric.sa.prefix_routes_file: %w", err))
		}
	}
	if s.AliasFile != "" {
		name := file(s.AliasFile)
		data, err := readBounded("alias GUIDs", name, alias.MaxListSize)
		var list alias.List
		if err == nil {
			list, err = alias.ParseList(name, data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("fabric.sa.alias_guids_file: %w", err))
		} else if len(list) > 0 {
			c.Aliases.Inventory = list
		}
	}
	g := &c.Groups
	g.NoIPoIBValidation, g.NoJoinValidation, g.ShareSNM = !s.IPoIBValidation, !s.JoinValidation, s.ShareSNM
	g.PacketLifeTime, g.MaxRate = core.Ports.SubnetTimeOut, s.MaxRate
	quota := s.PartitionGroups
	g.Quota = func(ib.PKey) int { return quota }
	c.Services.MaxLease, c.Services.DropWithPort = s.MaxLease, s.DropWithPort
	c.Inform.MaxQueued, c.Inform.MaxOnWire, c.Inform.DropOnFail = s.ReportsQueued, s.ReportsOnWire, s.DropOnFail
	if s.DropWithPort {
		c.Inform.Linger = -1
	}
	return c, errors.Join(errs...)
}

// readBounded reads a file, and a byte more than is allowed of one that is too large.
func readBounded(what, file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return data, nil
}
