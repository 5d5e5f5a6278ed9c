package main

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// portsConfig holds the parameters of ports that are policy. Times are codes of
// the standard: 4.096 us * 2^code.
type portsConfig struct {
	Prefix         ib.Prefix  `yaml:"prefix"`
	MaxMTU         int        `yaml:"max_mtu"`
	MaxVLs         int        `yaml:"max_vls"`
	SubnetTimeout  ib.ExpTime `yaml:"subnet_timeout"`
	PacketLifetime ib.ExpTime `yaml:"packet_lifetime"`
	HOQLife        ib.ExpTime `yaml:"hoq_life"`
	LeafHOQLife    ib.ExpTime `yaml:"leaf_hoq_life"`
	VLStallCount   uint8      `yaml:"vl_stall_count"`
	PhyErrors      uint8      `yaml:"phy_errors"`
	OverrunErrors  uint8      `yaml:"overrun_errors"`
}

func defaultPorts() portsConfig {
	d := sm.DefaultConfig()
	p := &d.Ports
	return portsConfig{
		Prefix: d.Prefix, MaxMTU: p.MaxMTU.Bytes(), MaxVLs: p.MaxOperationalVLs.Count(),
		SubnetTimeout: p.SubnetTimeOut, PacketLifetime: p.PacketLifetime,
		HOQLife: p.HOQLife, LeafHOQLife: p.LeafHOQLife, VLStallCount: p.VLStallCount,
		PhyErrors: p.LocalPhyErrors, OverrunErrors: p.OverrunErrors,
	}
}

func (s *portsConfig) check(k *checker, key string) {
	if s.Prefix>>48&0xFFC0 == 0 {
		k.wrong(key+".prefix", "%v: want a subnet prefix such as %v", s.Prefix, ib.DefaultPrefix)
	}
	if ib.MTUFromBytes(s.MaxMTU) == 0 {
		k.wrong(key+".max_mtu", "%d: want 256, 512, 1024, 2048 or 4096", s.MaxMTU)
	}
	if vlCap(s.MaxVLs) == 0 {
		k.wrong(key+".max_vls", "%d: want 1, 2, 4, 8 or 15", s.MaxVLs)
	}
	within(k, key+".subnet_timeout", s.SubnetTimeout, 1, 31)
	within(k, key+".packet_lifetime", s.PacketLifetime, 1, 31)
	within(k, key+".hoq_life", s.HOQLife, 1, 31)
	within(k, key+".leaf_hoq_life", s.LeafHOQLife, 1, 31)
	within(k, key+".vl_stall_count", s.VLStallCount, 1, 7)
	within(k, key+".phy_errors", s.PhyErrors, 1, 15)
	within(k, key+".overrun_errors", s.OverrunErrors, 1, 15)
}

func (s *portsConfig) flags(f *smFlags, key string) {
	f.value("prefix", key+".prefix", &s.Prefix)
	number(f, "max-mtu", key+".max_mtu", &s.MaxMTU)
	number(f, "max-vls", key+".max_vls", &s.MaxVLs)
}

func (s *portsConfig) apply(to *sm.Config, _ func(string) string) error {
	to.Prefix = s.Prefix
	p := &to.Ports
	p.MaxMTU, p.MaxOperationalVLs = ib.MTUFromBytes(s.MaxMTU), vlCap(s.MaxVLs)
	p.SubnetTimeOut, p.PacketLifetime = s.SubnetTimeout, s.PacketLifetime
	p.HOQLife, p.LeafHOQLife, p.VLStallCount = s.HOQLife, s.LeafHOQLife, s.VLStallCount
	p.LocalPhyErrors, p.OverrunErrors = s.PhyErrors, s.OverrunErrors
	return nil
}

// vlCap gives the code of a number of data VLs, 0 if there is none.
func vlCap(n int) ib.VLCap {
	for c := ib.VLCap(1); c <= 5; c++ {
		if c.Count() == n {
			return c
		}
	}
	return 0
}
