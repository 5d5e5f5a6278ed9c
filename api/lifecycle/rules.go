package lifecycle

// Effect is one change that a command makes, in words.
type Effect string

// Effects.
const (
	Counts     Effect = "counts one assignment more"
	Opens      Effect = "opens the window"
	Closes     Effect = "closes the window"
	Forgets    Effect = "forgets evidence, seal, token and certificate"
	Keeps      Effect = "keeps the evidence"
	HandsOver  Effect = "records the seal"
	Records    Effect = "records what was read back"
	Ends       Effect = "ends the assignment"
	Observes   Effect = "records what inventory, fabric and review show"
	Holds      Effect = "holds the host"
	LetsGo     Effect = "no longer holds the host"
	Shuts      Effect = "has its switch ports shut"
	OpensPorts Effect = "has its switch ports opened"
	Enters     Effect = "adds the host to inventory"
	Leaves     Effect = "removes the host from inventory"
	Disregards Effect = "closes the window, or no longer counts the evidence"
)

// Rule is one command: its actor, what refuses it, what it changes.
type Rule struct {
	Command Command
	By      Actor
	Epoch   bool    // it can name the assignment that it means, and is refused when another one came since
	Guards  []Guard // in the order in which they are asked
	Effects []Effect

	apply func(*Facts)
}

// Rules returns the rule of each command, in the order of the commands.
func Rules() []Rule { return rules[:] }

var rules = [commands]Rule{
	{Command: Import, By: Operator, Guards: []Guard{GuardUnknown}, Effects: []Effect{Enters}, apply: func(f *Facts) { f.Known = true }},
	{
		Command: Assign, By: Operator, Epoch: true, Guards: []Guard{GuardKnown, GuardNotHeld, GuardAbsent, GuardNotBound},
		Effects: []Effect{Counts, Opens, Forgets},
		apply: func(f *Facts) {
			f.forget()
			f.Assigned, f.Before, f.Window = true, true, true
		},
	},
	{
		Command: Attest, By: Provisioning, Epoch: true, Guards: []Guard{GuardKnown, GuardAssigned, GuardNotAdmitted, GuardWindow},
		Effects: []Effect{Forgets, Keeps},
		apply:   func(f *Facts) { f.Evidence, f.Sealed = true, false },
	},
	{
		Command: Seal, By: Provisioning, Epoch: true, Guards: []Guard{GuardKnown, GuardEvidence},
		Effects: []Effect{HandsOver}, apply: func(f *Facts) { f.Sealed = true },
	},
	{
		Command: ReadBack, By: Service, Epoch: true, Guards: []Guard{GuardKnown}, Effects: []Effect{Records},
		apply: func(f *Facts) {
			f.Applied, f.Left, f.Traces, f.Admitted = f.Given, false, f.Given, f.Admitted || f.Given
		},
	},
	{
		Command: Appear, By: Service, Guards: []Guard{GuardKnown, GuardOpen}, Effects: []Effect{Observes},
		apply: func(f *Facts) { f.Ready = true },
	},
	{Command: Vanish, By: Service, Guards: []Guard{GuardKnown}, Effects: []Effect{Observes}, apply: func(f *Facts) { f.Ready = false }},
	{
		Command: Claim, By: OtherHost, Guards: []Guard{GuardKnown}, Effects: []Effect{Holds},
		apply: func(f *Facts) { f.Held = true },
	},
	{Command: Resolve, By: Operator, Guards: []Guard{GuardKnown}, Effects: []Effect{LetsGo}, apply: func(f *Facts) { f.Held = false }},
	{
		Command: Replace, By: Operator, Epoch: true, Guards: []Guard{GuardKnown}, Effects: []Effect{Counts, Closes, Forgets},
		apply: func(f *Facts) {
			f.Evidence, f.Sealed, f.Window = false, false, false
		},
	},
	{
		Command: Expire, By: Service, Guards: []Guard{GuardKnown}, Effects: []Effect{Disregards},
		apply: func(f *Facts) { f.Window, f.Evidence = false, f.Evidence && f.Admitted },
	},
	{
		Command: Release, By: Operator, Epoch: true, Guards: []Guard{GuardKnown, GuardLeaving}, Effects: []Effect{Ends, Forgets},
		apply: end,
	},
	{
		Command: Fence, By: Operator, Epoch: true, Guards: []Guard{GuardKnown}, Effects: []Effect{Ends, Forgets, Shuts},
		apply: func(f *Facts) {
			end(f)
			f.Shut, f.Ready = true, false
		},
	},
	{Command: Reopen, By: Operator, Guards: []Guard{GuardKnown}, Effects: []Effect{OpensPorts}, apply: func(f *Facts) { f.Shut = false }},
	{
		Command: Remove, By: Operator, Epoch: true, Guards: []Guard{GuardKnown, GuardAway, GuardTraceless, GuardNotHeld},
		Effects: []Effect{Leaves}, apply: func(f *Facts) { *f = Facts{Before: f.Before, Shut: f.Shut, CutOff: f.CutOff} },
	},
}

// forget drops what was proven in an assignment.
func (f *Facts) forget() {
	f.Evidence, f.Sealed, f.Admitted, f.Granted, f.Window = false, false, false, false, false
}

func end(f *Facts) {
	f.forget()
	f.Assigned = false
}

// settle adds or withdraws grants, as each command does last.
func (f *Facts) settle() {
	proven := f.Assigned && f.counts() && (f.Sealed || f.Braked)
	given := proven && (f.Given || f.Ready)
	f.Left = f.Left && !given || f.Given && !given
	f.Applied = f.Applied && f.Given && given
	f.Traces = f.Traces || given
	f.Given, f.Granted = given, f.Granted || given
}

// Next decides about a command. It returns the facts after it, and what it changes; or the facts as they are, and the
// guard that refuses, which is "" for a command that is carried out.
func Next(f Facts, a Asked) (Facts, []Effect, Guard) {
	r := &rules[a.Command]
	if no := r.refuses(&f, a); no != "" {
		return f, nil, no
	}
	r.apply(&f)
	f.settle()
	return f, r.Effects, ""
}

// Refuses returns the guard that refuses a command, "" if none does.
func Refuses(f *Facts, a Asked) Guard { return rules[a.Command].refuses(f, a) }

func (r *Rule) refuses(f *Facts, a Asked) Guard {
	if r.Epoch && a.Late {
		return Changed
	}
	for _, g := range r.Guards {
		if !g.met(f, a) {
			return g
		}
	}
	return ""
}
