package sim

import "fmt"

// Adapter keeps the settings of a channel adapter outside of the simulator: a
// model of its firmware. Its methods are called while the fabric is held: they
// must not call the fabric.
type Adapter interface {
	// Boot is called when the adapter has power again. It returns the settings that are in force from then on.
	Boot() HCAConfig
}

// Install connects a model of its firmware to a channel adapter, and boots the adapter. From then on the model holds its
// settings; ConfigureHCA and ApplyConfig refuse. A model that resets its firmware by itself calls Reboot.
func (f *Fabric) Install(node string, a Adapter) error {
	return f.change("install adapter", func() error {
		n, err := f.findCA(node)
		if err != nil {
			return err
		}
		before := n.hca.current
		n.hca.adapter = a
		if n.boot(); n.hca.current != before {
			n.powerOff()
			n.powerOn()
		}
		return nil
	})
}

// ours reports, as an error, settings that are not the simulator's.
func (n *node) ours() error {
	if n.hca.adapter != nil {
		return fmt.Errorf("the settings of %q are those of its firmware: write them there", n.name)
	}
	return nil
}
