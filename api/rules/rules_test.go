package rules_test

import (
	"slices"
	"testing"

	"portcullis/api/roles"
	"portcullis/api/rules"
)

// TestClassesOfReasons compares the classes with the tables that say what operations do.
func TestClassesOfReasons(t *testing.T) {
	t.Parallel()
	ids := rules.Versions()
	demands := func(class, id string) bool { return rules.DemandsReason([]string{class}, id) }
	for id, v := range ids {
		if (v == rules.MustName || v == rules.NeverDemands) && !demands(rules.TakeAway, id) {
			t.Errorf("%s takes something away, and no reason is demanded", id)
		}
		for _, class := range []string{rules.TakeAway, rules.Approve} {
			if demands(class, id) && !demands(rules.Change, id) {
				t.Errorf("%s: %s demands a reason, and change does not", id, class)
			}
		}
	}
	counted := map[string]int{}
	var second []string
	for _, g := range roles.Table() {
		if g.Name == "approve" {
			second = g.Operations
		}
		for _, id := range g.Operations {
			_, changes := ids[id]
			for _, class := range rules.Classes() {
				if demands(class, id) {
					counted[class]++
				}
				if demands(class, id) && !changes {
					t.Errorf("%s: %s only reads", class, id)
				}
			}
			if len(g.Roles) > 0 && g.Name == "placement" && !demands(rules.Change, id) {
				t.Errorf("%s is no change", id)
			}
		}
	}
	for _, id := range second {
		if !demands(rules.Approve, id) {
			t.Errorf("%s decides as the second person, and no reason is demanded", id)
		}
	}
	if counted[rules.Approve] != len(second) {
		t.Errorf("%d operations are approve, want the %d of the table of roles", counted[rules.Approve], len(second))
	}
	if counted[rules.Change] < 50 {
		t.Errorf("operations by class: %v", counted)
	}
	for _, id := range []string{
		"end-adoption", "remove-equipment", "release-lock", "release-brake", "expire-reference", "forget-unseen", "reject-review", "end-review", "retire-keys",
		"mark-health", "activate-topospec-revision", "rollback-topospec", "confirm-rma", "confirm-repair",
		"rotate-host-authority", "rotate-result-key", "rotate-receipt-key",
	} {
		if !demands(rules.TakeAway, id) {
			t.Errorf("%s has something taken away, and no reason is demanded", id)
		}
	}
	if rules.DemandsReason(nil, "release-host") || rules.DemandsReason(rules.Classes(), "make-plan") || rules.DemandsReason(rules.Classes(), "get-host") || rules.DemandsReason([]string{"other"}, "release-host") {
		t.Error("a reason is demanded where none is")
	}
	if !slices.Equal(rules.Classes(), []string{rules.Approve, rules.TakeAway, rules.Change}) {
		t.Errorf("classes %v", rules.Classes())
	}
}
