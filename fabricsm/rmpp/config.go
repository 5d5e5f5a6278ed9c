package rmpp

import (
	"fmt"
	"time"

	"portcullis/fabricsm/mad"
)

// Config bounds the work of a Table. A zero field has its documented default.
type Config struct {
	// Sessions is how many transactions there are at once, of all ports: 4096.
	// Each holds up to Window segments, so all of them 54 MB.
	Sessions int
	// PerPort is how many of them are one port's: 16.
	PerPort int

	// Window is how many segments are sent ahead of acknowledgements: 64, the window that a Linux kernel grants. 2 to 4096.
	// A peer that grants more would acknowledge later, and is asked by a repeated segment.
	Window int
	// Burst is how many segments one step of one transaction sends: 64.
	Burst int
	// Step is after how many segments Expire leaves the rest due: 512.
	Step int
	// Timeout is how long to wait for an ACK before sending again: 2 s.
	Timeout time.Duration
	// Retries is how often to send again before giving up: 3. A new ACK resets it.
	Retries int
	// SendLimit is how long a whole answer may take: 60 s. A Linux kernel stops waiting after 40 s.
	SendLimit time.Duration

	// Accept lists the methods of messages to us that may begin unasked: GetMulti.
	Accept []mad.Method
	// MaxMessage is the length of the longest of those in bytes: 8184, a
	// MultiPathRecord with 510 GIDs.
	MaxMessage int
	// ReceiveWindow is how many segments a peer may send at a time: 16. 1 to 64.
	ReceiveWindow int
	// ReceiveLimit is how long a message may take to arrive: 40 s.
	ReceiveLimit time.Duration
	// Remember is how long a whole message is remembered, so that segments sent
	// again are acknowledged and not taken for a new one: 10 s.
	Remember time.Duration
	// Remembered is how many are; then the oldest is forgotten: 4096.
	Remembered int
}

// withDefaults fills in zero fields and refuses invalid values.
func (c Config) withDefaults() (Config, error) {
	type field struct {
		name           string
		v              *int
		def, low, high int
	}
	for _, f := range []field{
		{"Sessions", &c.Sessions, 4096, 1, 1 << 20},
		{"PerPort", &c.PerPort, 16, 1, 1 << 10},
		{"Window", &c.Window, 64, 2, 4096},
		{"Burst", &c.Burst, 64, 1, 4096},
		{"Step", &c.Step, 512, 1, 1 << 20},
		{"Retries", &c.Retries, 3, 1, 100},
		{"MaxMessage", &c.MaxMessage, 24 + 510*16, mad.SADataSize, 1 << 24},
		{"ReceiveWindow", &c.ReceiveWindow, 16, 1, 64},
		{"Remembered", &c.Remembered, 4096, 1, 1 << 20},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < f.low || *f.v > f.high {
			return c, fmt.Errorf("rmpp: %s is %d, not within %d to %d", f.name, *f.v, f.low, f.high)
		}
	}
	for _, f := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"Timeout", &c.Timeout, 2 * time.Second},
		{"SendLimit", &c.SendLimit, 60 * time.Second},
		{"ReceiveLimit", &c.ReceiveLimit, 40 * time.Second},
		{"Remember", &c.Remember, 10 * time.Second},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < 0 {
			return c, fmt.Errorf("rmpp: %s is %v, which is negative", f.name, *f.v)
		}
	}
	if c.Accept == nil {
		c.Accept = []mad.Method{mad.MethodGetMulti}
	}
	return c, nil
}
