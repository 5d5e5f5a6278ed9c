package sim

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/hcaconf"
)

// firewalled reports whether the host of a node is blocked from subnet management.
func (n *node) firewalled() bool { return n.hca.Current.SMPFirewall }

// bars reports whether the software of a host may not send or receive a MAD: an SMP behind a firewall, and any MAD without
// power.
func (n *node) bars(m *mad.MAD) bool { return n.off || n.firewalled() && m.IsSMP() }

// ConfigureHCA changes the settings of an adapter from its host. Root on the host can do so unless the settings are locked.
// The host itself cannot lock them.
func (f *Fabric) ConfigureHCA(node string, c hcaconf.Config) error {
	return f.change("configure adapter", func() error {
		n, err := f.findCA(node)
		if err != nil {
			return err
		}
		return n.hca.Configure(n.name, c)
	})
}

// ApplyConfig applies a signed configuration to an adapter. The Device must trust the signer, and the configuration must be
// for this adapter and newer than the last one.
func (f *Fabric) ApplyConfig(node string, c hcaconf.Signed) error {
	return f.change("apply signed configuration", func() error {
		n, err := f.findCA(node)
		if err != nil {
			return err
		}
		return n.hca.Apply(n.name, n.guid, c, n.model().Trusts)
	})
}

// Install connects a model of its firmware to a channel adapter, and boots the adapter. From then on the model holds its
// settings; ConfigureHCA and ApplyConfig refuse. A model that resets its firmware by itself calls Reboot.
func (f *Fabric) Install(node string, m hcaconf.Firmware) error {
	return f.change("install adapter", func() error {
		n, err := f.findCA(node)
		if err != nil {
			return err
		}
		before := n.hca.Current
		n.hca.Firmware = m
		if n.hca.Boot(); n.hca.Current != before {
			n.powerOff()
			n.powerOn()
		}
		return nil
	})
}

// HCA returns the current settings of an adapter, and those of the next boot. A node that is no adapter has none.
func (f *Fabric) HCA(node string) (current, next hcaconf.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.findCA(node)
	if err != nil {
		return current, next
	}
	return n.hca.Current, n.hca.Next
}

func (f *network) findCA(name string) (*node, error) {
	n, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if n.typ != ib.NodeCA {
		return nil, fmt.Errorf("%q is no channel adapter", n.name)
	}
	return n, nil
}
