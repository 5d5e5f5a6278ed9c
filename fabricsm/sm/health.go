package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
)

// HealthMarked is the input by which an operator overrides the rules at a place;
// port 0 of a switch stands for the switch. MarkNone also ends a quarantine that
// follows from a rule. It is remembered over restarts.
type HealthMarked struct {
	Place  ib.Place
	Mark   health.Mark
	Reason string // the operator's words, at most health.MaxReason bytes; more is cut off
}

func (*HealthMarked) input() {}

// healthCore is the core as package health uses it.
type healthCore struct{ desk }

var _ health.Core = healthCore{}

func (f healthCore) IsProtected(pl ib.Place) bool       { return f.quarantine.IsUntouchable(pl) }
func (f healthCore) Apply(pl ib.Place, a health.Action) { f.quarantine.Apply(pl, a) }
func (f healthCore) TickLater(d time.Duration)          { f.after(d, work.Health, work.Ref{}) }

func (f healthCore) Save(s health.Saved) {
	f.save(Fact{
		Kind: FactHealth, GUID: s.Place.Switch, Port: s.Place.Port, Mark: s.Mark, Quarantine: s.Quarantine, Since: s.Since, Reason: s.Reason,
	})
}

// load takes a saved fact.
func (f healthCore) load(s *Fact) {
	f.health.Load(&health.Saved{
		Place: ib.Place{Switch: s.GUID, Port: s.Port}, Mark: s.Mark, Quarantine: s.Quarantine, Since: s.Since, Reason: s.Reason,
	})
}

// marked takes the mark of an operator.
func (f healthCore) marked(in *HealthMarked) {
	if in.Mark == health.MarkNone {
		f.law.ReleaseMarked(in.Place, in.Reason)
	}
	f.viewDue = f.quarantine.Mark(in.Place, in.Mark, in.Reason) || f.viewDue
}
