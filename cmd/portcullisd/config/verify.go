package config

import (
	"time"

	"portcullis/api/isolation/remedy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/readback"
)

// Verify says how the service examines the isolation of all tenants by itself.
type Verify struct {
	Every            time.Duration `yaml:"every"`
	Rate             int           `yaml:"rate"`
	AssumeMembership bool          `yaml:"assume_membership"`
	Drift            Drift         `yaml:"drift"`
}

// Drift has what is done about each kind of drift.
type Drift struct {
	Stray       string `yaml:"stray"`
	NotEnforced string `yaml:"not_enforced"`
	Membership  string `yaml:"membership"`
	Missing     string `yaml:"missing"`
	Leaving     string `yaml:"leaving"`
}

// defaultDrift returns the actions where the configuration says nothing.
func defaultDrift() Drift {
	of := remedy.Default()
	action := func(kind string) string { return of[kind].String() }
	return Drift{
		Stray: action(v1.DriftStray), NotEnforced: action(v1.DriftNotEnforced), Membership: action(v1.DriftMembership),
		Missing: action(v1.DriftMissing), Leaving: action(v1.DriftLeaving),
	}
}

// actions returns the names of actions by key, and by kind of drift.
func (d *Drift) actions() map[string]struct{ kind, action string } {
	return map[string]struct{ kind, action string }{
		"stray": {v1.DriftStray, d.Stray}, "not_enforced": {v1.DriftNotEnforced, d.NotEnforced}, "membership": {v1.DriftMembership, d.Membership},
		"missing": {v1.DriftMissing, d.Missing}, "leaving": {v1.DriftLeaving, d.Leaving},
	}
}

// Policy returns what is done about each kind.
func (d *Drift) Policy() remedy.Policy {
	p := remedy.Policy{}
	for _, is := range d.actions() {
		p[is.kind], _ = remedy.ParseAction(is.action) // check has refused others
	}
	return p
}

func (k *checker) verify(v *Verify) {
	if v.Every != 0 {
		k.between("verify.every", v.Every, time.Minute, 30*24*time.Hour)
	}
	for key, is := range v.Drift.actions() {
		if _, err := remedy.ParseAction(is.action); err != nil {
			k.wrong("verify.drift."+key, "%v", err)
		}
	}
	within(k, "verify.rate", v.Rate, 10, readback.DefaultRate)
}
