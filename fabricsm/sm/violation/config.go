package violation

import (
	"cmp"
	"time"
)

// Config bounds what violations and traps may cost.
type Config struct {
	// Rows is how many rows are kept, half of them for those that are confirmed; default 4096. Reports without room are
	// counted in rows that stand for others.
	Rows int
	// RowsPerSource is how many rows one source may have; default 64.
	RowsPerSource int
	// TellEvery is how often rows that grew are reported again; default 1 s.
	TellEvery time.Duration
	// ChecksPerSecond is how many Gets a second traps of hosts and of violations may
	// cause, all sources together; default 200.
	ChecksPerSecond int
	// Quiet is the time after which a row that comes again is reported from the beginning of the sequence; default 10 min.
	Quiet time.Duration
}

// WithDefaults returns the configuration with the default of each field that is zero.
func (c Config) WithDefaults() Config {
	return Config{
		Rows: cmp.Or(c.Rows, 4096), RowsPerSource: cmp.Or(c.RowsPerSource, 64), TellEvery: cmp.Or(c.TellEvery, time.Second),
		ChecksPerSecond: cmp.Or(c.ChecksPerSecond, 200), Quiet: cmp.Or(c.Quiet, 10*time.Minute),
	}
}

// Check reports every value that makes no sense.
func (c *Config) Check(wrong func(format string, args ...any)) {
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"rows of violations", int64(c.Rows)},
		{"rows of violations of one source", int64(c.RowsPerSource)},
		{"time between two events of a violation", int64(c.TellEvery)},
		{"checks of traps in a second", int64(c.ChecksPerSecond)},
		{"quiet time of violations", int64(c.Quiet)},
	} {
		if n.n < 0 {
			wrong("%s is negative", n.name)
		}
	}
}
