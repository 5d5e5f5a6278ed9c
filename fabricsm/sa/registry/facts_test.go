package registry_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sm"
)

func TestSaved(t *testing.T) {
	facts := []sm.Fact{
		{Kind: sm.FactSAService, Name: "b", Body: "2"},
		{Kind: sm.FactSAGroup, Name: "a", Body: "3"},
		{Kind: sm.FactSAService, Name: "c"}, // taken back
		{Kind: sm.FactSAService, Name: "a", Body: "1"},
	}
	want := []sm.Fact{facts[3], facts[0]}
	if d := cmp.Diff(want, registry.Saved(facts, sm.FactSAService), cmpopts.IgnoreUnexported(sm.Fact{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
