package smrank_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/smrank"
)

var states = []ib.SMState{ib.SMNotActive, ib.SMDiscovering, ib.SMStandby, ib.SMMaster}

// TestRank checks the order of Subnet Managers: by priority, then by the lower GUID.
func TestRank(t *testing.T) {
	order := []smrank.Rank{{15, 9}, {3, 1}, {3, 2}, {0, 1}}
	for i, r := range order {
		for j, s := range order {
			if got := r.IsAbove(s); got != (i < j) {
				t.Errorf("%+v above %+v: %t", r, s, got)
			}
		}
	}
}

// TestShown checks what this Subnet Manager reports of itself.
func TestShown(t *testing.T) {
	for _, tt := range []struct {
		name     string
		own      smrank.Own
		state    ib.SMState
		priority uint8
	}{
		{"a standby", smrank.Own{State: ib.SMStandby}, ib.SMStandby, 2},
		{"a master", smrank.Own{State: ib.SMMaster}, ib.SMMaster, 9},
		{"one that discovers", smrank.Own{State: ib.SMDiscovering}, ib.SMDiscovering, 2},
		{"one that discovers under a mandate", smrank.Own{State: ib.SMDiscovering, Claims: true}, ib.SMMaster, 9},
		{"a master that ends", smrank.Own{State: ib.SMMaster, Leaving: true}, ib.SMNotActive, 2},
		{"a master without a lease", smrank.Own{State: ib.SMMaster, Barred: true}, ib.SMNotActive, 2},
	} {
		tt.own.Priority, tt.own.MasterPriority = 2, 0x19 // four bits are sent
		if got, r := tt.own.Shown(), tt.own.Rank(); got != tt.state || r.Priority != tt.priority {
			t.Errorf("%s: %v with priority %d, want %v with %d", tt.name, got, r.Priority, tt.state, tt.priority)
		}
	}
}

// TestLegal checks every control code in every pair of states (IBTA volume 1, 14.4.1).
func TestLegal(t *testing.T) {
	type pair struct{ sender, own ib.SMState }
	legal := map[mad.SMInfoControl][]pair{
		mad.SMInfoHandover:    {{ib.SMMaster, ib.SMDiscovering}, {ib.SMMaster, ib.SMStandby}, {ib.SMMaster, ib.SMMaster}},
		mad.SMInfoAcknowledge: {{ib.SMStandby, ib.SMStandby}},
		mad.SMInfoDisable:     {{ib.SMMaster, ib.SMStandby}},
		mad.SMInfoStandby:     {{ib.SMMaster, ib.SMNotActive}},
		mad.SMInfoDiscover:    {{ib.SMMaster, ib.SMStandby}, {ib.SMMaster, ib.SMMaster}},
	}
	for control := range mad.SMInfoControl(8) {
		for _, sender := range states {
			for _, own := range states {
				want := slices.Contains(legal[control], pair{sender, own})
				if got := smrank.IsLegal(control, sender, own); got != want {
					t.Errorf("%v from %v to %v: %t", control, sender, own, got)
				}
			}
		}
	}
}

// TestYieldsTo checks which Subnet Managers discovery leaves the fabric to, and which comes first.
func TestYieldsTo(t *testing.T) {
	above, below := smrank.Rank{Priority: 7, GUID: 5}, smrank.Rank{Priority: 3, GUID: 5}
	for _, tt := range []struct {
		name  string
		own   smrank.Own
		other smrank.Other
		want  bool
	}{
		{"a master below", smrank.Own{}, smrank.Other{Rank: below, State: ib.SMMaster}, true},
		{"a master below that did not hand over", smrank.Own{}, smrank.Other{Rank: below, State: ib.SMMaster, Ignored: true}, false},
		{"a master above that did not hand over", smrank.Own{}, smrank.Other{Rank: above, State: ib.SMMaster, Ignored: true}, true},
		{"a standby above", smrank.Own{}, smrank.Other{Rank: above, State: ib.SMStandby}, true},
		{"one above that discovers", smrank.Own{}, smrank.Other{Rank: above, State: ib.SMDiscovering}, true},
		{"a standby below", smrank.Own{}, smrank.Other{Rank: below, State: ib.SMStandby}, false},
		{"a standby above, under a mandate", smrank.Own{Claims: true}, smrank.Other{Rank: above, State: ib.SMStandby}, false},
		{"a standby above that does not rule", smrank.Own{Stubborn: true}, smrank.Other{Rank: above, State: ib.SMStandby}, false},
		{"one above that is not active", smrank.Own{}, smrank.Other{Rank: above}, false},
	} {
		tt.own.State, tt.own.Priority, tt.own.MasterPriority, tt.own.GUID = ib.SMDiscovering, 5, 5, 5
		if tt.own.YieldsTo(&tt.other) {
			t.Errorf("%s: ours yields although it is not trusted", tt.name)
		}
		tt.other.Trusted = true
		if got := tt.own.YieldsTo(&tt.other); got != tt.want {
			t.Errorf("%s: yields %t, want %t", tt.name, got, tt.want)
		}
	}
	master, standby := smrank.Other{Rank: below, State: ib.SMMaster}, smrank.Other{Rank: above, State: ib.SMStandby}
	low := smrank.Other{Rank: below, State: ib.SMStandby}
	if !master.IsBefore(&standby) || standby.IsBefore(&master) || !standby.IsBefore(&low) || low.IsBefore(&standby) {
		t.Error("want masters first, then the higher rank")
	}
}

// TestWeigh checks what follows from the answer of another Subnet Manager.
func TestWeigh(t *testing.T) {
	standby, master := smrank.Own{State: ib.SMStandby}, smrank.Own{State: ib.SMMaster}
	claims, discovers := smrank.Own{State: ib.SMDiscovering, Claims: true}, smrank.Own{State: ib.SMDiscovering}
	above, below := smrank.Rank{Priority: 7, GUID: 5}, smrank.Rank{Priority: 3, GUID: 5}
	is := func(r smrank.Rank, s ib.SMState) smrank.Other { return smrank.Other{Rank: r, State: s, Trusted: true} }
	ignored := is(below, ib.SMMaster)
	ignored.Ignored = true
	foreign := is(above, ib.SMMaster)
	foreign.Trusted = false
	for _, tt := range []struct {
		name  string
		own   smrank.Own
		other smrank.Other
		at    smrank.Moment
		want  smrank.Verdict
	}{
		{"the master rules", standby, is(above, ib.SMMaster), smrank.Moment{Polled: true, Late: true}, smrank.MasterRules},
		{"it is lower", standby, is(below, ib.SMMaster), smrank.Moment{Polled: true}, smrank.MasterIsLower},
		{"it is being handed the fabric", standby, is(above, ib.SMStandby), smrank.Moment{Polled: true, Handing: true, Late: true}, smrank.Nothing},
		{"it stepped down", standby, is(above, ib.SMNotActive), smrank.Moment{Polled: true}, smrank.MasterLeft},
		{"it is lower and no master", standby, is(below, ib.SMStandby), smrank.Moment{Polled: true}, smrank.MasterLeft},
		{"it is not master yet", standby, is(above, ib.SMDiscovering), smrank.Moment{Polled: true}, smrank.Nothing},
		{"it is late", standby, is(above, ib.SMDiscovering), smrank.Moment{Polled: true, Late: true}, smrank.MasterIsLate},
		{"it is no longer trusted", standby, foreign, smrank.Moment{Polled: true}, smrank.Nothing},
		{"it is no longer trusted, for long", standby, foreign, smrank.Moment{Polled: true, Late: true}, smrank.MasterIsLate},
		{"another rules", standby, is(below, ib.SMMaster), smrank.Moment{}, smrank.OtherRules},
		{"another rules, too", standby, is(above, ib.SMMaster), smrank.Moment{Ruled: true}, smrank.Nothing},
		{"another stands by", standby, is(above, ib.SMStandby), smrank.Moment{}, smrank.Nothing},
		{"another, not trusted, rules", standby, foreign, smrank.Moment{}, smrank.Nothing},
		{"a standby above a master", master, is(above, ib.SMStandby), smrank.Moment{}, smrank.HandOver},
		{"a master above a master", master, is(above, ib.SMMaster), smrank.Moment{}, smrank.HandOver},
		{"one above that discovers", master, is(above, ib.SMDiscovering), smrank.Moment{}, smrank.Nothing},
		{"a master below", master, is(below, ib.SMMaster), smrank.Moment{}, smrank.AwaitHandover},
		{"a master below that does not hand over", master, ignored, smrank.Moment{}, smrank.Remind},
		{"a second master below", master, is(below, ib.SMMaster), smrank.Moment{Waits: true}, smrank.Remind},
		{"a master below, under a mandate", claims, is(below, ib.SMMaster), smrank.Moment{Waits: true, Awaited: true}, smrank.Remind},
		{"it handed over", claims, is(below, ib.SMStandby), smrank.Moment{Waits: true, Awaited: true}, smrank.RivalLeft},
		{"a standby below", master, is(below, ib.SMStandby), smrank.Moment{}, smrank.Nothing},
		{"a master that is not trusted", master, foreign, smrank.Moment{}, smrank.Nothing},
		{"discovery decides later", discovers, is(above, ib.SMMaster), smrank.Moment{}, smrank.Nothing},
	} {
		tt.own.Priority, tt.own.MasterPriority, tt.own.GUID = 5, 5, 5
		if got := tt.own.Weigh(&tt.other, tt.at); got != tt.want {
			t.Errorf("%s: verdict %d, want %d", tt.name, got, tt.want)
		}
	}
}
