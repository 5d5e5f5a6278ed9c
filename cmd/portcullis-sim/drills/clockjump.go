package drills

import (
	"context"
	"time"

	"portcullis/api/admission"
	"portcullis/api/clock/keeper"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/drill"
)

// jumpingClock is T146: the clock of the service's machine is set back, and the service is started again.
func jumpingClock(s *drill.Scene) {
	var off time.Duration
	var wall func() time.Time
	var kept *keeper.Keeper
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		base := o.Now
		wall = func() time.Time { return base().Add(off) }
		if o.Now = wall; !s.Off(HighestTime) {
			began := base()
			kept = keeper.New(keeper.Options{Store: o.Store, Log: o.Log, Wall: wall, Elapsed: func() time.Duration { return base().Sub(began) }})
			s.Must(kept.Read(context.Background()))
			o.Now, o.Clock = kept.Now, kept
		}
	}})
	waiver := attesttest.References()[0]
	waiver.Version, waiver.Waiver, waiver.Registers = 2, true, nil
	waiver.Owner, waiver.Reason, waiver.Approver = "ann", "roll-out of firmware", "bob"
	waiver.Expires = e.clock().Add(10 * time.Minute)
	e.trust(waiver)
	boot(e.hosts["h7"], "roll-out")
	e.assign("h7", "acme")
	s.Must(e.attest(e.hosts["h7"]))
	s.Check(e.phase("h7") == v1.PhaseAdmitted, "h7, for which the waiver was in force, is %s", e.phase("h7"))

	s.Tried("the waiver ends, the clock of the service's machine is set back to before that, and the service is started again; then %s boots what it was for", suspect)
	e.Run(15 * time.Minute)
	if kept != nil {
		kept.Flush(e.ctx()) // as it does each minute
	}
	e.mark()
	off = -14 * time.Minute
	if kept != nil {
		began := e.clock()
		kept = keeper.New(keeper.Options{Store: e.store, Log: e.log, Wall: wall, Elapsed: func() time.Duration { return e.clock().Sub(began) }})
		s.Must(kept.Read(e.ctx()))
		e.options.Now, e.options.Clock = kept.Now, kept
	}
	e.restartService()
	e.serveAPI(e.log)
	m := e.hosts[suspect]
	boot(m, "roll-out")
	if s.Off(HighestTime) {
		e.agents = wall // hosts go by the time of the site
	}
	e.refused(e.attest(m), attest.ReasonReference, proven, "which booted what is not approved")
	if kept == nil {
		return
	}
	why := kept.Halted()
	e.Counted(why != nil, "portcullis clock show, /readyz: %v", why)

	s.Tried("an honest host boots the provisioning image meanwhile")
	e.assign("h6", "acme")
	s.Must(e.attest(e.hosts["h6"]))
	if s.Check(e.phase("h6") != v1.PhaseAdmitted, "h6 is admitted by a clock that is not believed") {
		s.Stopped("nothing new is granted until the clock is right")
	}
	s.Check(e.phase("h1") == v1.PhaseAdmitted, "h1, which was admitted before, is %s", e.phase("h1"))
	off = 0
	e.Run(time.Minute)
	e.sync()
	if s.Check(e.phase("h6") == v1.PhaseAdmitted, "with the right clock h6 is %s", e.phase("h6")) {
		s.Stopped("once the clock is right, what waited is granted")
	}
}
