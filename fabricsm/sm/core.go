package sm

import "time"

const maxSlots = 1 << 12

// Core is the Subnet Manager. Use New. It is not safe for concurrent use.
type Core struct {
	cfg Config
}

// New makes a core. It does nothing before it is stepped with Started.
func New(cfg Config) *Core { return &Core{cfg: cfg.withDefaults()} }

// Step advances the subnet manager by one input. It never blocks.
func (c *Core) Step(now time.Time, in Input) Output { return Output{} }
