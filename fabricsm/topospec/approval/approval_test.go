package approval_test

import (
	"testing"

	"portcullis/fabricsm/topospec/approval"
)

func TestRule(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		alone     bool
		author    approval.Person
		by        []approval.Person
		count     int
		allowsOwn bool
	}{
		{false, "ann", nil, 0, false},
		{false, "ann", []approval.Person{"ann"}, 0, false},
		{false, "ann", []approval.Person{"ann", "bob"}, 1, false},
		{false, "ann", []approval.Person{"bob", "bob"}, 1, false},
		{false, "ann", []approval.Person{"bob", "cleo"}, 2, false},
		{false, "ann", []approval.Person{"", "bob"}, 1, false},
		{true, "ann", []approval.Person{"ann"}, 1, true},
		{true, "ann", []approval.Person{"ann", "bob", "bob", ""}, 2, true},
	} {
		r := approval.Rule{Alone: test.alone}
		if n := r.Count(test.author, test.by); n != test.count {
			t.Errorf("%+v: of %q %d count, want %d", r, test.by, n, test.count)
		}
		if got := r.Allows(test.author, test.author); got != test.allowsOwn {
			t.Errorf("%+v: the author may approve: %v, want %v", r, got, test.allowsOwn)
		}
		if r.Allows(test.author, "") {
			t.Errorf("%+v: a change is approved by nobody", r)
		}
	}
}
