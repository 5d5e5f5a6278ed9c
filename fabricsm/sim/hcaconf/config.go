// Package hcaconf has the settings of a channel adapter that decide what its host can do to the fabric, and the signatures on
// them.
package hcaconf

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Config has the settings of a channel adapter that decide what its host can do to the fabric. They survive reboots, and
// a change takes effect at the next one: as on real adapters there is a current and a next value.
type Config struct {
	// SMPFirewall blocks subnet management of the host. No SMP of its software leaves the adapter or reaches the adapter's
	// own agent, and the software receives none. It cannot set IsSM either. GMPs, data, and the answers of the adapter's
	// agent are not affected.
	SMPFirewall bool

	// VFs is how many virtual functions guests get, and VFSMPs lets those send and
	// get SMPs as their host does: real adapters keep queue pair 0 from them.
	VFs    uint8
	VFSMPs bool

	// Locked adapters take only settings that are signed. Only a signed
	// configuration locks, or unlocks.
	Locked bool
}

// ErrLocked means that an adapter does not take settings from its host.
var ErrLocked = errors.New("settings of the adapter are locked: apply a signed configuration")

// Verifier verifies that a trusted signer signed a configuration. It returns nil if so.
type Verifier interface {
	Verify(message, signature []byte) error
}

// Firmware keeps the settings of a channel adapter outside of the simulator. Its methods are called while the fabric is
// held: they must not call the fabric.
type Firmware interface {
	// Boot is called when the adapter has power again. It returns the settings that are in force from then on.
	Boot() Config
}

// Settings are those of one adapter. Their methods take its name, for errors.
type Settings struct {
	Current, Next Config
	Firmware      Firmware // nil: the settings are kept here
	serial        uint64   // of the last signed configuration
}

// Boot makes the next settings the current ones.
func (s *Settings) Boot() {
	if s.Firmware != nil {
		s.Next = s.Firmware.Boot()
	}
	s.Current = s.Next
}

// ours reports, as an error, settings that are not the simulator's.
func (s *Settings) ours(name string) error {
	if s.Firmware != nil {
		return fmt.Errorf("the settings of %q are those of its firmware: write them there", name)
	}
	return nil
}

// Configure changes the settings from the host of the adapter, which can neither do that to locked ones, nor lock them.
func (s *Settings) Configure(name string, c Config) error {
	err := s.ours(name)
	switch {
	case err != nil:
		return err
	case s.Current.Locked || s.Next.Locked:
		return fmt.Errorf("%q: %w", name, ErrLocked)
	case c.Locked:
		return fmt.Errorf("%q: a host cannot lock the settings of its adapter: apply a signed configuration", name)
	}
	s.Next = c
	return nil
}

// Apply applies a signed configuration to the adapter with a GUID. The signer must be trusted, and the configuration must be
// for this adapter and newer than the last one. trusted nil trusts no signature.
func (s *Settings) Apply(name string, guid ib.GUID, c Signed, trusted Verifier) error {
	if err := s.ours(name); err != nil {
		return err
	}
	if trusted == nil {
		return fmt.Errorf("%q trusts no signature", name)
	}
	if err := trusted.Verify(c.Message, c.Signature); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	body, err := parseConfig(c.Message)
	switch {
	case err != nil:
		return fmt.Errorf("%q: %w", name, err)
	case body.GUID != 0 && body.GUID != guid:
		return fmt.Errorf("%q: the configuration is for %v, this is %v", name, body.GUID, guid)
	case body.Serial <= s.serial:
		return fmt.Errorf("%q: the configuration has serial number %d, the last one had %d", name, body.Serial, s.serial)
	}
	s.Next, s.serial = body.Config, body.Serial
	return nil
}
