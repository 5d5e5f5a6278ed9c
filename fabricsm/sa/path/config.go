package path

import (
	"cmp"
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
)

// Config is the fixed configuration of an Engine.
type Config struct {
	Prefix         ib.Prefix  // subnet prefix; default ib.DefaultPrefix
	PacketLifeTime ib.ExpTime // of all paths but loops, option subnet_timeout; default 18
	// MaxRate is the highest rate code in answers, option max_rate_enum. A faster rate is returned as the fastest one with
	// a lower code. Default all.
	MaxRate ib.Rate
	// FullWorld allows queries that leave both ends open, option sa_pr_full_world_queries_allowed. They are only for
	// trusted requesters, unless the trust model allows them for others.
	FullWorld bool
	// Policy sets the level of service of paths; nil: none. The books must be made with it, see portindex.Rules.
	Policy *qos.Policy
	// QoS defines which service levels switches drop, if they are programmed.
	QoS qos.Options
	// Partitions maps partitions, by base P_Key, to their service levels; default 0.
	Partitions map[ib.PKey]ib.SL
	// Routes are the ways to other subnets; the first that fits counts.
	Routes []PrefixRoute
	// TraceKey is mixed into the identifiers of TraceRecords.
	TraceKey uint64
}

// PrefixRoute is the router to a subnet.
type PrefixRoute struct {
	Prefix ib.Prefix // 0: every other subnet
	Router ib.GUID   // port GUID of the router; 0: the one with the lowest LID
}

// Engine answers questions. It is immutable, and any number of goroutines may use it.
type Engine struct {
	cfg    Config
	atMost [64]ib.Rate // by code: the rate in answers
	below  [64]ib.Rate // by code: the fastest that is slower, 0 without one
	drops  [4][16]bool // by qos.Kind and service level
}

// New creates an engine. An error names the wrong part of the configuration.
func New(cfg Config) (*Engine, error) {
	cfg.Prefix = cmp.Or(cfg.Prefix, ib.DefaultPrefix)
	cfg.PacketLifeTime = cmp.Or(cfg.PacketLifeTime, 18)
	cfg.MaxRate = cmp.Or(cfg.MaxRate, 63)
	var errs []error
	if cfg.PacketLifeTime > 31 {
		errs = append(errs, fmt.Errorf("path: packet lifetime %d: want 1 to 31", cfg.PacketLifeTime))
	}
	if cfg.MaxRate < ib.Rate2_5 {
		errs = append(errs, fmt.Errorf("path: highest code of a rate %d: want 2 or more", cfg.MaxRate))
	}
	for k, sl := range cfg.Partitions {
		if sl > 15 {
			errs = append(errs, fmt.Errorf("path: service level %d of partition %v: want 0 to 15", sl, k))
		}
	}
	for _, r := range cfg.Routes {
		if r.Prefix == cfg.Prefix || r.Prefix == ib.DefaultPrefix {
			errs = append(errs, fmt.Errorf("path: prefix route for %v: that is this subnet", r.Prefix))
		}
	}
	e := &Engine{cfg: cfg}
	for code := range ib.Rate(len(e.atMost)) {
		if code.Mbps() > 0 {
			e.atMost[code] = code.AtMost(cfg.MaxRate)
		}
		for o := range ib.Rate(len(e.below)) {
			if o.Mbps() > 0 && o.Compare(code) < 0 && o.Compare(e.below[code]) > 0 {
				e.below[code] = o
			}
		}
	}
	if cfg.QoS.Enabled {
		for k := range e.drops {
			t := cfg.QoS.Table(qos.Kind(k))
			for sl, vl := range t.SLtoVL {
				e.drops[k][sl] = vl == ib.VL15
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e, nil
}
