package sim

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// HCAConfig has the settings of a channel adapter that decide what its host can do to the fabric. They survive reboots, and
// a change takes effect at the next one: as on real adapters there is a current and a next value.
type HCAConfig struct {
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

// ConfigVerifier verifies that a trusted signer signed a configuration. It returns nil if so.
type ConfigVerifier interface {
	Verify(message, signature []byte) error
}

// hca is the configuration of a channel adapter.
type hca struct {
	current, next HCAConfig
	serial        uint64  // of the last signed configuration
	adapter       Adapter // nil: the settings are kept here
}

// firewalled reports whether the host of a node is blocked from subnet management.
func (n *node) firewalled() bool { return n.hca.current.SMPFirewall }

// bars reports whether the software of a host may not send or receive a MAD: an SMP behind a firewall, and any MAD without
// power.
func (n *node) bars(m *mad.MAD) bool { return n.off || n.firewalled() && m.IsSMP() }

// ConfigureHCA changes the settings of an adapter from its host. Root on the host can do so unless the settings are locked.
// The host itself cannot lock them.
func (f *Fabric) ConfigureHCA(node string, c HCAConfig) error {
	return f.change("configure adapter", func() error {
		n, err := f.findCA(node)
		if err == nil {
			err = n.ours()
		}
		switch {
		case err != nil:
			return err
		case n.hca.current.Locked || n.hca.next.Locked:
			return fmt.Errorf("%q: %w", n.name, ErrLocked)
		case c.Locked:
			return fmt.Errorf("%q: a host cannot lock the settings of its adapter: apply a signed configuration", n.name)
		}
		n.hca.next = c
		return nil
	})
}

// ApplyConfig applies a signed configuration to an adapter. The Device must trust the signer, and the configuration must be
// for this adapter and newer than the last one.
func (f *Fabric) ApplyConfig(node string, c SignedConfig) error {
	return f.change("apply signed configuration", func() error {
		n, err := f.findCA(node)
		if err == nil {
			err = n.ours()
		}
		if err != nil {
			return err
		}
		trusted := n.model().Trusts
		if trusted == nil {
			return fmt.Errorf("%q trusts no signature", n.name)
		}
		if err := trusted.Verify(c.Message, c.Signature); err != nil {
			return fmt.Errorf("%q: %w", n.name, err)
		}
		body, err := parseConfig(c.Message)
		switch {
		case err != nil:
			return fmt.Errorf("%q: %w", n.name, err)
		case body.GUID != 0 && body.GUID != n.guid:
			return fmt.Errorf("%q: the configuration is for %v, this is %v", n.name, body.GUID, n.guid)
		case body.Serial <= n.hca.serial:
			return fmt.Errorf("%q: the configuration has serial number %d, the last one had %d", n.name, body.Serial, n.hca.serial)
		}
		n.hca.next, n.hca.serial = body.Config, body.Serial
		return nil
	})
}

// HCA returns the current settings of an adapter, and those of the next boot. A node that is no adapter has none.
func (f *Fabric) HCA(node string) (current, next HCAConfig) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.findCA(node)
	if err != nil {
		return current, next
	}
	return n.hca.current, n.hca.next
}

func (f *Fabric) findCA(name string) (*node, error) {
	n, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if n.typ != ib.NodeCA {
		return nil, fmt.Errorf("%q is no channel adapter", n.name)
	}
	return n, nil
}

// boot makes the next settings the current ones.
func (n *node) boot() {
	if n.hca.adapter != nil {
		n.hca.next = n.hca.adapter.Boot()
	}
	n.hca.current = n.hca.next
}
