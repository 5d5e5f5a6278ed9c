package election

import (
	"cmp"
	"time"

	"portcullis/fabricsm/sm/smtrust"
)

// Config decides which Subnet Manager is master where there are several. The zero value of a field means its default.
type Config struct {
	// MasterPriority is the priority while this SM is master, 0 to 15. Above
	// the normal priority it keeps a new SM of the same priority from taking over,
	// so that mastership does not go to and fro. Default: the normal priority.
	MasterPriority uint8

	// Allowed are the other SMs that this one works with. With a list no other SM is believed, and the SM_Key is shown only
	// to those on it. Without one this SM yields to any SM that shows the SM_Key, obeys no commands, and shows its own
	// SM_Key to no SM.
	Allowed []smtrust.Allowed

	// PollEvery is how often a standby asks the master for its SMInfo; default
	// 500 ms. Misses tries in a row without an answer mean that the master is
	// dead; default 4. A dead master is noticed within PollEvery + Misses x the
	// owner's timeout.
	PollEvery time.Duration
	Misses    int

	// Patience is how long another SM may take to become master when it should,
	// or to hand over; default 5 s.
	Patience time.Duration
}

// SetDefaults fills in the default of every field that is zero. priority is the normal one, 0 to 15.
func (c *Config) SetDefaults(priority uint8) {
	c.MasterPriority = max(c.MasterPriority, priority)
	c.PollEvery = cmp.Or(c.PollEvery, 500*time.Millisecond)
	c.Misses = cmp.Or(c.Misses, 4)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
}
