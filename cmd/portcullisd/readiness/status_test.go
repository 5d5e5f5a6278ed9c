package readiness

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	var told []string
	s := New(func(line string) { told = append(told, line) })
	s.Set(Store, "")
	s.Set(SM, "no simulator")
	s.Set(SM, "no simulator")
	want := []v1.Condition{{Name: SM, Detail: "no simulator"}, {Name: Store, OK: true}}
	if d := cmp.Diff(s.Conditions(t.Context()), want); d != "" {
		t.Errorf("conditions (-got +want):\n%s", d)
	}
	if s.Set(SM, "no simulator") || !s.Set(SM, "") {
		t.Error("set does not tell changes from repetitions")
	}
	lines := []string{"serving", "serving, but sm: no simulator", "serving"}
	if d := cmp.Diff(told, lines); d != "" {
		t.Errorf("lines (-got +want):\n%s", d)
	}
}

// A part is well if it is in each aspect.
func TestStatusOfAspects(t *testing.T) {
	t.Parallel()
	s := New(func(string) {})
	s.Set(SM, "standing by")
	s.SetAspect(SM, Sight, "blind")
	s.Set(SM, "")
	if got, want := s.Conditions(t.Context()), []v1.Condition{{Name: SM, Detail: "blind"}}; !cmp.Equal(got, want) {
		t.Errorf("conditions %+v, want %+v", got, want)
	}
	s.SetAspect(SM, Sight, "")
	if got, want := s.Conditions(t.Context()), []v1.Condition{{Name: SM, OK: true}}; !cmp.Equal(got, want) {
		t.Errorf("conditions %+v, want %+v", got, want)
	}
}
