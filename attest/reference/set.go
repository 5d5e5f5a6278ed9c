package reference

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"portcullis/attest/eventlog"
)

// Bounds of a set.
const (
	MaxOneOf   = 32   // digests that are good at one position, values of one register
	MaxDigests = 8192 // of a whole set

	// MaxWaiver is the longest life of a waiver.
	MaxWaiver = 30 * 24 * time.Hour
)

// firmwarePCRs is how many registers, from 0 on, belong to firmware.
const firmwarePCRs = 8

// DefaultClass is the class of hosts that have none in inventory.
const DefaultClass = "default"

var classForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckClass reports what is wrong with the name of a class.
func CheckClass(class string) error {
	if !classForm.MatchString(class) {
		return fmt.Errorf("class %.80q, want lower-case letters, digits, '.', '_' and '-', at most 64", class)
	}
	return nil
}

// State is how far a set has come.
type State string

// States of a set.
const (
	Draft    State = "draft"    // learned; not trusted
	Approved State = "approved" // trusted until it ends
	Ended    State = "ended"    // ended by an operator
)

// Set is the reference values of one class of hosts, one version of them.
type Set struct {
	Class   string `json:"class"`
	Version uint64 `json:"version"` // counts up within the class
	State   State  `json:"state"`
	Waiver  bool   `json:"waiver,omitempty"` // takes any boot whose log replays; Registers is empty

	Registers []Register `json:"registers,omitempty"` // ascending

	Source   string    `json:"source"` // the hosts or files it was learned from
	Owner    string    `json:"owner"`  // author of the set, or person responsible for a waiver
	Made     time.Time `json:"made"`
	Reason   string    `json:"reason"`
	Approver string    `json:"approver,omitempty"`
	Trusted  time.Time `json:"trusted,omitzero"` // since when
	Expires  time.Time `json:"expires,omitzero"` // zero: not by itself
}

// Register is the allowed content of one register: one of Values or, if there are none, the result of Events.
type Register struct {
	PCR    int               `json:"pcr"`
	Values []eventlog.Digest `json:"values,omitempty"`
	Events []Position        `json:"events,omitempty"`
}

// Position is one event of a register, in its order: one of OneOf, or any when
// Ignore is set. Any number of events, none included, may stand where Many is
// set.
type Position struct {
	OneOf  []eventlog.Digest `json:"one_of,omitempty"`
	Ignore bool              `json:"ignore,omitempty"`
	Many   bool              `json:"many,omitempty"` // with Ignore
	Note   string            `json:"note,omitempty"` // what firmware claimed it to be, for people
}

// mayIgnore reports the registers in which positions may be ignorable: those
// of configuration. The others hold code and keys.
func mayIgnore(pcr int) bool { return pcr == 1 || pcr == 3 || pcr == 5 || pcr == 6 }

// Name returns class and version, as "gpu-node/3".
func (s *Set) Name() string { return fmt.Sprintf("%s/%d", s.Class, s.Version) }

// Valid reports that the set is trusted at a time.
func (s *Set) Valid(now time.Time) bool {
	return s.State == Approved && (s.Expires.IsZero() || now.Before(s.Expires))
}

// Check reports the first thing that makes a set unusable.
func (s *Set) Check() error {
	if err := CheckClass(s.Class); err != nil {
		return err
	}
	if s.Waiver {
		return s.checkWaiver()
	}
	for pcr := range firmwarePCRs {
		if s.register(pcr) == nil {
			return fmt.Errorf("PCR %d is missing; want at least the firmware's, 0 to %d", pcr, firmwarePCRs-1)
		}
	}
	digests := 0
	for i := range s.Registers {
		r := &s.Registers[i]
		if r.PCR < 0 || r.PCR >= eventlog.NumPCRs || i > 0 && r.PCR <= s.Registers[i-1].PCR {
			return fmt.Errorf("registers: PCR %d, want 0 to %d, ascending, without duplicates", r.PCR, eventlog.NumPCRs-1)
		}
		n, err := r.check()
		if err != nil {
			return fmt.Errorf("PCR %d: %w", r.PCR, err)
		}
		digests += n
	}
	if digests > MaxDigests {
		return fmt.Errorf("%d digests, at most %d", digests, MaxDigests)
	}
	return nil
}

func (s *Set) checkWaiver() error {
	switch {
	case len(s.Registers) > 0:
		return errors.New("a waiver has no reference values")
	case s.Owner == "" || s.Reason == "":
		return errors.New("a waiver needs an owner and a reason")
	case s.Expires.IsZero():
		return errors.New("a waiver needs an end date")
	case s.Expires.Sub(s.Made) > MaxWaiver:
		return fmt.Errorf("a waiver lasts at most %d days", int(MaxWaiver.Hours()/24))
	}
	return nil
}

// check counts digests.
func (r *Register) check() (digests int, err error) {
	if len(r.Values) > 0 && len(r.Events) > 0 {
		return 0, errors.New("has both whole values and events")
	}
	if len(r.Values) > MaxOneOf || len(r.Events) > eventlog.MaxEvents {
		return 0, fmt.Errorf("%d values and %d events, at most %d and %d", len(r.Values), len(r.Events), MaxOneOf, eventlog.MaxEvents)
	}
	digests = len(r.Values)
	for i := range r.Events {
		p := &r.Events[i]
		switch {
		case p.Ignore && !mayIgnore(r.PCR):
			return 0, errors.New("no event may be ignored there: it holds code or keys; only in PCR 1, 3, 5 and 6")
		case p.Many && !p.Ignore, p.Ignore == (len(p.OneOf) > 0), len(p.OneOf) > MaxOneOf:
			return 0, fmt.Errorf("position %d: want 1 to %d digests, or to be ignored", i+1, MaxOneOf)
		}
		digests += 1 + len(p.OneOf)
	}
	return digests, nil
}

func (s *Set) register(pcr int) *Register {
	i := slices.IndexFunc(s.Registers, func(r Register) bool { return r.PCR == pcr })
	if i < 0 {
		return nil
	}
	return &s.Registers[i]
}
