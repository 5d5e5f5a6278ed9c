package export_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/export"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/topospectest"
)

// TestIbnetdiscoverComesBack writes a specification as ibnetdiscover would print its
// fabric, and reads it.
func TestIbnetdiscoverComesBack(t *testing.T) {
	s := topospectest.Spec(t, topospectest.Revision(t, generate.Design{Template: generate.RailPod, Units: 2, FirstUnit: 31, Aggregation: true, SM: []generate.SMHost{{Name: "sm", Unit: 1, Rail: 1}}}))
	text := export.Ibnetdiscover(s)
	got, err := discovered.Parse("export", "f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range diff.Compare(s, topospectest.Spec(t, got), diff.CablesOnly).Items {
		t.Error(i)
	}
}

func TestSlurm(t *testing.T) {
	r := topospectest.Revision(t, topospectest.Small())
	got, err := export.Slurm(topospectest.Spec(t, r))
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ = strings.Cut(got, "\n")
	want := `SwitchName=leaf-1 Nodes=host-0001,host-0002,host-0003
SwitchName=leaf-2 Nodes=host-0004,host-0005,host-0006
SwitchName=leaf-3 Nodes=host-0007,host-0008,host-0009
SwitchName=leaf-4 Nodes=host-0010,host-0011,host-0012
SwitchName=spine-1-1-1 Switches=leaf-1,leaf-2
SwitchName=spine-1-1-2 Switches=leaf-1,leaf-2
SwitchName=spine-2-1-1 Switches=leaf-3,leaf-4
SwitchName=spine-2-1-2 Switches=leaf-3,leaf-4
SwitchName=core-1-1 Switches=spine-1-1-1,spine-2-1-1
SwitchName=core-2-1 Switches=spine-1-1-2,spine-2-1-2
`
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	topospectest.Device(t, r, "leaf-1").Name = "leaf 1"
	if _, err := export.Slurm(topospectest.Spec(t, r)); err == nil {
		t.Error("a name with a space is taken")
	}
}

func TestGUIDs(t *testing.T) {
	r := topospectest.Revision(t, topospectest.Small())
	s := topospectest.Spec(t, r)
	for list, want := range map[export.List]int{export.Roots: 2, export.Compute: 12, export.IO: 1, export.Allowed: 13} {
		got, err := export.GUIDs(s, list)
		if err != nil || strings.Count(got, "\n") != want {
			t.Errorf("%s has %d lines, want %d, %v", list, strings.Count(got, "\n"), want, err)
		}
	}
	roots, _ := export.GUIDs(s, export.Roots)
	if want := topospectest.Device(t, r, "core-1-1").GUID.String() + "\n" + topospectest.Device(t, r, "core-2-1").GUID.String() + "\n"; roots != want {
		t.Errorf("roots %q, want %q", roots, want)
	}
	if _, err := export.GUIDs(s, "x"); err == nil {
		t.Error("an unknown list is written")
	}
}
