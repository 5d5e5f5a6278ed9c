package main

import (
	"crypto/rand"
	"fmt"

	"portcullis/fabricsm/driver/sealed"
)

// checkRoot logs, when the service starts, whether the root of this machine opens the
// keys of devices that the store has. The root is a file on each machine with the sm
// role, and must be the same on all: where it is another one, the machine can't manage
// the fabric, which must be known before it has to.
func (s *service) checkRoot() {
	k := &s.config.Fabric.Keys
	if !k.ManagesKeys() {
		return
	}
	found, err := s.rootOpens()
	switch {
	case err != nil:
		err = fmt.Errorf("fabric.keys.root: this machine does not open the keys of devices in the store: %w", err)
		s.log.Error("this machine cannot manage the fabric", "error", err, "hint", "bring the root here that the other machines have; it is the same on all")
		s.status.Set("keys", err.Error())
	case found:
		s.log.Info("the root opens the keys of devices in the store", "root", k.Root)
	}
}

func (s *service) rootOpens() (found bool, _ error) {
	root, err := s.config.Fabric.Keys.OpenRoot(s.config.Path)
	if err != nil {
		return false, err
	}
	facts, err := s.sealedFacts()
	if err != nil {
		return false, err
	}
	return sealed.Check(facts, root, rand.Reader)
}
