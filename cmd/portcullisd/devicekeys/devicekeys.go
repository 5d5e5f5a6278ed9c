// Package devicekeys opens the sealed keys of devices, and has the core issue new ones.
package devicekeys

import (
	"crypto/rand"

	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// Ring is where the keys of devices are kept and come from.
type Ring struct {
	*keystore.Store
	drawn *keys.Drawn // nil: they are derived
}

// ClosedError says that the stored keys of devices do not open.
type ClosedError struct{ err error }

func (e *ClosedError) Error() string { return "open the keys of devices: " + e.err.Error() }

func (e *ClosedError) Unwrap() error { return e.err }

// Open opens the keys in a store, and has the core issue them. Without keys it returns the store as it is.
func Open(c *config.Keys, inner driver.Store, path func(string) string, to *sm.Config) (driver.Store, *Ring, error) {
	if !c.ManagesKeys() {
		return inner, nil, nil
	}
	root, err := c.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	k := &Ring{}
	if k.Store, err = keystore.Open(inner, root, rand.Reader); err != nil {
		return nil, nil, &ClosedError{err}
	}
	if c.Mode == string(keys.ModeRandom) {
		if k.drawn, err = keys.NewDrawn(rand.Reader, keys.MostDrawn); err != nil {
			return nil, nil, err
		}
		setSource(c, k.drawn, to)
		return k.Store, k, nil
	}
	master, err := k.Master()
	if err != nil {
		return nil, nil, &ClosedError{err}
	}
	setSource(c, keys.Derived{Master: master}, to)
	return k.Store, k, nil
}

// setSource sets the source of new keys.
func setSource(c *config.Keys, source keys.Source, to *sm.Config) {
	if c.ManagesMKeys() {
		to.MKey.Source = source
	}
	if to.ClassKeys.On() {
		to.ClassKeys.Source = source
	}
}

// Fill draws keys to replace those that were issued. The caller must be the goroutine that steps the core, between two
// steps.
func (k *Ring) Fill() error {
	if k == nil || k.drawn == nil {
		return nil
	}
	return k.drawn.Fill()
}

// SAKeys returns the source of SA_Keys, nil where there is nothing to seal them with. They are drawn in either mode. They
// need not be derived again, and one that was used never comes back with an old backup.
func (k *Ring) SAKeys() keys.Source {
	if k == nil {
		return nil
	}
	return keys.Random{Reader: rand.Reader}
}
