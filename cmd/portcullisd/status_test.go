package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
)

func TestStatus(t *testing.T) {
	var told []string
	s := newStatus(func(line string) { told = append(told, line) })
	s.set("store", "")
	s.set("fabric", "no simulator")
	s.set("fabric", "no simulator")
	want := []v1.Condition{{Name: "fabric", Detail: "no simulator"}, {Name: "store", OK: true}}
	if d := cmp.Diff(s.conditions(t.Context()), want); d != "" {
		t.Errorf("conditions (-got +want):\n%s", d)
	}
	if s.set("fabric", "no simulator") || !s.set("fabric", "") {
		t.Error("set does not tell changes from repetitions")
	}
	lines := []string{"serving", "serving, but fabric: no simulator", "serving"}
	if d := cmp.Diff(told, lines); d != "" {
		t.Errorf("lines (-got +want):\n%s", d)
	}
}
