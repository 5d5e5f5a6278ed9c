package sa

import (
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sa/trust"
)

// Status is the status of an Agent, for display. It is not written to after it is returned.
type Status struct {
	Serving bool
	Stats   Stats
	Limiter [limiter.NumLanes][limiter.NumVerdicts]uint64
	Reports inform.Stats

	Groups, Services, Subscriptions, Aliases int // of aliases, the ports that have some
	Registered                               Registered

	Epoch keys.Epoch // of the SA_Key in force; 0: there is none
	Since time.Time  // when it came into force
	Grace time.Time  // until when the one before is taken; zero: there is none

	Violations []trust.Violation // in the order in which they began

	Front FrontStatus // of packets of all other classes; the Agent leaves it empty
}

// Registered has the registrations at one moment. It is immutable, and costs nothing to make.
type Registered struct {
	Groups        group.Snapshot
	Services      service.Snapshot
	Subscriptions inform.Snapshot
	Aliases       alias.Snapshot
	Book          *portindex.Book // locations of ports
}

// Status returns the current status.
func (a *Agent) Status() *Status {
	if a.wrongs.Changed() {
		a.shown = a.wrongs.List()
	}
	k := a.keys.State()
	s := &Status{
		Serving: a.serving, Stats: a.Stats(), Reports: a.subs.Stats(),
		Groups: a.groups.Len(), Services: a.services.Len(), Subscriptions: a.subs.Len(), Aliases: a.aliases.Now().Len(),
		Registered: Registered{a.groups.Now(), a.services.Now(), a.subs.Now(), a.aliases.Now(), a.book},
		Epoch:      k.Record.Current.Epoch, Since: k.Record.Current.Since, Grace: k.GraceEnds, Violations: a.shown,
		Limiter: totalsOf(a.limiter),
	}
	return s
}
