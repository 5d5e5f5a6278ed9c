package main

import (
	"portcullis/api/measuredboot"
)

// newReferences makes what keeps reference values of measured boots.
func (s *service) newReferences() *measuredboot.Service {
	return measuredboot.New(measuredboot.Options{
		Store: s.store, Log: s.log, Now: s.clock.Now, PCRs: s.parts.Policy.PCRs, Alone: !s.config.Admission.TwoPersons,
	})
}
