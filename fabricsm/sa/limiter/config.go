package limiter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxTenants is how many tenants there may be.
const MaxTenants = 1024

// Allowance is a rate and a burst. A rate of 0 is no limit.
type Allowance struct {
	Rate  int // a second
	Burst int // at once
}

// String returns the form that UnmarshalText reads.
func (a Allowance) String() string {
	if a.Rate == 0 {
		return unlimitedText
	}
	return fmt.Sprintf("%d/s burst %d", a.Rate, a.Burst)
}

const unlimitedText = "unlimited"

// MarshalText returns the form of String.
func (a Allowance) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads "RATE/s burst BURST" or "unlimited".
func (a *Allowance) UnmarshalText(text []byte) error {
	if string(text) == unlimitedText {
		*a = Allowance{}
		return nil
	}
	words := strings.Fields(string(text))
	if len(words) == 3 && words[1] == "burst" {
		per, inSeconds := strings.CutSuffix(words[0], "/s")
		rate, rateErr := strconv.ParseUint(per, 10, 31)
		burst, burstErr := strconv.ParseUint(words[2], 10, 31)
		if inSeconds && rateErr == nil && burstErr == nil && rate > 0 {
			*a = Allowance{Rate: int(rate), Burst: int(burst)}
			return nil
		}
	}
	return fmt.Errorf(`allowance %q: want RATE/s burst BURST, for example "5000/s burst 1000", or unlimited`, text)
}

// LaneConfig limits one lane.
type LaneConfig struct {
	All  Allowance `yaml:"all"`  // of the whole lane; its burst is more than MaxTenants
	Node Allowance `yaml:"node"` // of each node
}

// Config limits all.
type Config struct {
	Management     LaneConfig `yaml:"management"`
	Administration LaneConfig `yaml:"administration"`
	Other          LaneConfig `yaml:"other"`
	Managers       LaneConfig `yaml:"managers"`
	Work           WorkConfig `yaml:"work"`
	// Changes limits how many registrations a node may change, in saved facts.
	Changes Allowance `yaml:"changes"`
}

// DefaultConfig is for a service of one core that answers some hundred thousand requests a second, in a fabric where a host
// sends some hundred when a job starts. A step takes up to 600 ns, so the requests of one node take a twelfth of a core.
func DefaultConfig() Config {
	return Config{
		// A trap costs half a microsecond, and its repress a packet. Devices send some a
		// second; a switch all of whose links go down at once sends less than a burst.
		Management:     LaneConfig{All: Allowance{50_000, 50_000}, Node: Allowance{1000, 2000}},
		Administration: LaneConfig{All: Allowance{200_000, 20_000}, Node: Allowance{5000, 5000}},
		Other:          LaneConfig{All: Allowance{2000, 2048}, Node: Allowance{50, 100}},
		// A standby polls twice a second, and repeats unanswered requests.
		Managers: LaneConfig{All: Allowance{2000, 2048}, Node: Allowance{200, 400}},
		Work:     WorkConfig{PerRequest: 1 << 18, Node: Allowance{1 << 17, 1 << 19}},
		Changes:  Allowance{100, 1000},
	}
}

// The most that an allowance may be: numbers beyond do not fit into the clock.
const (
	maxRate  = 1_000_000_000
	maxBurst = 1 << 30
	// slowest is the time in seconds that a burst may take to come back.
	slowest = 3600
)

func (a Allowance) check(name string, least int) error {
	switch {
	case a.Rate == 0:
		return nil
	case a.Rate < 0 || a.Rate > maxRate:
		return fmt.Errorf("limiter: rate of %s %d: want 1 to %d a second, or 0 for no limit", name, a.Rate, maxRate)
	case a.Burst < least || a.Burst > maxBurst:
		return fmt.Errorf("limiter: burst of %s %d: want %d to %d", name, a.Burst, least, maxBurst)
	case a.Burst/a.Rate > slowest:
		return fmt.Errorf("limiter: burst of %s %d: at %d a second it takes more than an hour to come back; want a smaller burst or a higher rate", name, a.Burst, a.Rate)
	default:
		return nil
	}
}

// Check reports values that make no sense, all of them.
func (c *Config) Check() error {
	var errs []error
	for i, lane := range c.lanes() {
		name := Lane(i + int(Management)).String()
		errs = append(errs, lane.All.check(name, MaxTenants+1), lane.Node.check(name+" of a node", 1))
	}
	return errors.Join(append(errs, c.Work.check(), c.Changes.check("changes of a node", 1))...)
}

// lanes returns the limited lanes, by Lane from Management on.
func (c *Config) lanes() [numLanes - 1]LaneConfig {
	return [...]LaneConfig{c.Management, c.Administration, c.Other, c.Managers}
}
