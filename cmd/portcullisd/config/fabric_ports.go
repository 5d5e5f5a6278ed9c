package config

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portpolicy"
)

// Ports holds the parameters of ports that are policy. Times are codes of
// the standard: 4.096 us * 2^code.
type Ports struct {
	Prefix           ib.Prefix  `yaml:"prefix"`
	MaxMTU           int        `yaml:"max_mtu"`
	MaxVLs           int        `yaml:"max_vls"`
	SubnetTimeout    ib.ExpTime `yaml:"subnet_timeout"`
	PacketLifetime   ib.ExpTime `yaml:"packet_lifetime"`
	HOQLife          ib.ExpTime `yaml:"hoq_life"`
	LeafHOQLife      ib.ExpTime `yaml:"leaf_hoq_life"`
	VLStallCount     uint8      `yaml:"vl_stall_count"`
	LeafVLStallCount uint8      `yaml:"leaf_vl_stall_count"`
	MasterSL         ib.SL      `yaml:"master_sl"`
	PhyErrors        uint8      `yaml:"phy_errors"`
	OverrunErrors    uint8      `yaml:"overrun_errors"`
	LinkSpeed        string     `yaml:"link_speed"`
	LinkWidth        string     `yaml:"link_width"`
	Retrain          bool       `yaml:"retrain"`
	LMCPort0         bool       `yaml:"lmc_port0"`
	Reregister       bool       `yaml:"reregister"`
	Rules            []Rule     `yaml:"rules"`
}

// Rule is an exception for single ports. Keys left out are as for all ports.
type Rule struct {
	GUID      ib.GUID    `yaml:"guid"`
	Port      ib.PortNum `yaml:"port"`
	LinkSpeed string     `yaml:"link_speed"`
	LinkWidth string     `yaml:"link_width"`
	MaxMTU    int        `yaml:"max_mtu"`
	MaxVLs    int        `yaml:"max_vls"`
	Disabled  bool       `yaml:"disabled"`
}

func defaultPorts() Ports {
	d := sm.DefaultConfig()
	p := &d.Ports
	return Ports{
		Prefix: d.Prefix, MaxMTU: p.MaxMTU.Bytes(), MaxVLs: p.MaxOperationalVLs.Count(),
		SubnetTimeout: p.SubnetTimeOut, PacketLifetime: p.PacketLifetime,
		HOQLife: p.HOQLife, LeafHOQLife: p.LeafHOQLife,
		VLStallCount: p.VLStallCount, LeafVLStallCount: p.LeafVLStallCount, MasterSL: p.MasterSMSL,
		PhyErrors: p.LocalPhyErrors, OverrunErrors: p.OverrunErrors,
		LinkSpeed: keep, LinkWidth: keep, Reregister: !p.NoReregister,
	}
}

func (s *Ports) check(k *checker, key string) {
	if s.Prefix>>48&0xFFC0 == 0 {
		k.wrong(key+".prefix", "%v: want a subnet prefix such as %v", s.Prefix, ib.DefaultPrefix)
	}
	k.mtu(key+".max_mtu", s.MaxMTU)
	k.vls(key+".max_vls", s.MaxVLs)
	within(k, key+".subnet_timeout", s.SubnetTimeout, 1, 31)
	within(k, key+".packet_lifetime", s.PacketLifetime, 1, 31)
	within(k, key+".hoq_life", s.HOQLife, 1, 31)
	within(k, key+".leaf_hoq_life", s.LeafHOQLife, 1, 31)
	within(k, key+".vl_stall_count", s.VLStallCount, 1, 7)
	within(k, key+".leaf_vl_stall_count", s.LeafVLStallCount, 1, 7)
	within(k, key+".master_sl", s.MasterSL, 0, 15)
	within(k, key+".phy_errors", s.PhyErrors, 1, 15)
	within(k, key+".overrun_errors", s.OverrunErrors, 1, 15)
	k.link(key, s.LinkSpeed, s.LinkWidth)
	seen := make(map[portpolicy.Rule]int)
	for i := range s.Rules {
		s.Rules[i].check(k, fmt.Sprintf("%s.rules.%d", key, i), i, seen)
	}
}

// check checks a rule, of which seen holds those before it by port.
func (r *Rule) check(k *checker, key string, i int, seen map[portpolicy.Rule]int) {
	if !r.GUID.Valid() {
		k.wrong(key+".guid", "%v: want the GUID of a node or of an end port", r.GUID)
	}
	if r.MaxMTU != 0 {
		k.mtu(key+".max_mtu", r.MaxMTU)
	}
	if r.MaxVLs != 0 {
		k.vls(key+".max_vls", r.MaxVLs)
	}
	k.link(key, r.LinkSpeed, r.LinkWidth)
	if r.Disabled && r.Port == 0 {
		k.wrong(key+".disabled", "want the port of a switch with it, not all of its ports")
	}
	which := portpolicy.Rule{GUID: r.GUID, Port: r.Port}
	if before, again := seen[which]; again {
		k.wrong(key+".guid", "%v port %d has a rule already, number %d: join the two", r.GUID, r.Port, before+1)
	}
	seen[which] = i
}

func (k *checker) mtu(key string, bytes int) {
	if ib.MTUFromBytes(bytes) == 0 {
		k.wrong(key, "%d: want 256, 512, 1024, 2048 or 4096", bytes)
	}
}

func (k *checker) vls(key string, n int) {
	if vlCap(n) == 0 {
		k.wrong(key, "%d: want 1, 2, 4, 8 or 15", n)
	}
}

// Values of link_speed and link_width besides a speed or a width.
const (
	keep      = "keep"      // as found
	supported = "supported" // all that the port supports
)

// link checks the keys link_speed and link_width below a key.
func (k *checker) link(key, speed, width string) {
	if _, err := linkSpeed(speed); err != nil {
		k.wrong(key+".link_speed", "%v, %s or %s", err, keep, supported)
	}
	if _, err := linkWidth(width); err != nil {
		k.wrong(key+".link_width", "%v, %s or %s", err, keep, supported)
	}
}

func linkSpeed(s string) (ib.Speed, error) {
	switch s {
	case "", keep:
		return 0, nil
	case supported:
		return ib.XDR, nil
	default:
		return ib.ParseSpeed(s)
	}
}

func linkWidth(s string) (ib.LinkWidth, error) {
	switch s {
	case "", keep:
		return 0, nil
	case supported:
		return ib.Width12x, nil
	default:
		return ib.ParseLinkWidth(s)
	}
}

func (s *Ports) flags(f *smFlags, key string) {
	f.value("prefix", key+".prefix", &s.Prefix)
	number(f, "max-mtu", key+".max_mtu", &s.MaxMTU)
	number(f, "max-vls", key+".max_vls", &s.MaxVLs)
	f.text("link-speed", key+".link_speed", &s.LinkSpeed)
	f.text("link-width", key+".link_width", &s.LinkWidth)
	f.truth("retrain", key+".retrain", &s.Retrain)
}

func (s *Ports) apply(to *sm.Config, _ func(string) string) error {
	to.Prefix = s.Prefix
	p := &to.Ports
	p.MaxMTU, p.MaxOperationalVLs = ib.MTUFromBytes(s.MaxMTU), vlCap(s.MaxVLs)
	p.SubnetTimeOut, p.PacketLifetime = s.SubnetTimeout, s.PacketLifetime
	p.HOQLife, p.LeafHOQLife = s.HOQLife, s.LeafHOQLife
	p.VLStallCount, p.LeafVLStallCount = s.VLStallCount, s.LeafVLStallCount
	p.MasterSMSL, p.LocalPhyErrors, p.OverrunErrors = s.MasterSL, s.PhyErrors, s.OverrunErrors
	p.Link = linkPolicy(s.LinkSpeed, s.LinkWidth)
	p.Retrain, p.LMCPort0, p.NoReregister = s.Retrain, s.LMCPort0, !s.Reregister
	for _, r := range s.Rules {
		p.Rules = append(p.Rules, portpolicy.Rule{
			GUID: r.GUID, Port: r.Port, Link: linkPolicy(r.LinkSpeed, r.LinkWidth),
			MaxMTU: ib.MTUFromBytes(r.MaxMTU), MaxVLs: vlCap(r.MaxVLs), Disabled: r.Disabled,
		})
	}
	return nil
}

// linkPolicy makes a policy of words that were checked.
func linkPolicy(speed, width string) (l portpolicy.Link) {
	l.MaxSpeed, _ = linkSpeed(speed)
	l.MaxWidth, _ = linkWidth(width)
	return l
}

// vlCap returns the code of a number of data VLs, 0 if there is none.
func vlCap(n int) ib.VLCap {
	for c := ib.VLCap(1); c <= 5; c++ {
		if c.Count() == n {
			return c
		}
	}
	return 0
}
