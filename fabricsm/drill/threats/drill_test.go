package threats

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/drill"
)

// open are the drills that cannot be played yet. Each says what it needs, and
// counts as not passed where drills are played; the list only gets shorter.
var open = []string{
	"T5", "T16", "T46", "T88", "T89", "T90", "T91", "T92", "T93", "T94", "T95", "T96", "T97", "T98", "T99", "T100", "T101", "T102", "T103", "T104", "T105", "T106", "T107", "T108", "T109", "T110", "T111", "T112", "T113", "T114", "T115", "T116", "T117", "T118", "T119", "T120", "T121", "T122", "T123", "T124", "T125", "T126", "T127", "T128", "T129", "T130", "T131", "T132", "T133", "T134", "T135", "T136", "T138", "T139", "T140", "T141", "T143", "T144", "T145", "T146", "T147",
}

// TestDrillsPass plays every drill with all controls.
func TestDrillsPass(t *testing.T) {
	for _, d := range All() {
		t.Run(d.ID, func(t *testing.T) {
			t.Parallel()
			r := drill.Run(d, drill.Options{Seed: 1})
			switch {
			case (r.Needs != "") != slices.Contains(open, d.ID):
				t.Errorf("%s needs %q; it is one of those that cannot be played yet: %v", d.ID, r.Needs, slices.Contains(open, d.ID))
			case r.Needs != "" && r.Passed:
				t.Errorf("%s passed without being played", d.ID)
			case r.Needs != "":
			case !r.Passed:
				t.Errorf("%s failed: %q", d.ID, r.Failures)
			case len(r.Reported) == 0 || len(r.Stopped) == 0:
				t.Errorf("%s says neither what stopped it (%q) nor where it was reported (%q)", d.ID, r.Stopped, r.Reported)
			}
		})
	}
}

// TestControls: without a control, every drill that it carries fails, and not only because the attack was not reported:
// something happened on the fabric.
func TestControls(t *testing.T) {
	for _, c := range drill.Controls() {
		if len(c.Drills) == 0 {
			t.Errorf("control %s carries no drill", c.Name)
		}
		picked, err := Pick(All(), c.Drills)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range picked {
			t.Run(string(c.Name)+"/"+d.ID, func(t *testing.T) {
				t.Parallel()
				r := drill.Run(d, drill.Options{Seed: 1, Without: []drill.Control{c.Name}})
				if r.Needs != "" {
					t.Fatalf("%s carries %s, which cannot be played: %s", c.Name, d.ID, r.Needs)
				}
				onFabric := slices.DeleteFunc(slices.Clone(r.Failures), func(f string) bool { return strings.HasPrefix(f, drill.Unreported) })
				if r.Passed || len(onFabric) == 0 {
					t.Errorf("%s passes without %s, or fails in what is reported alone: %q", d.ID, c.Name, r.Failures)
				}
			})
		}
	}
}

// TestDeterministic: the same seed leads to the same results, to the packet.
func TestDeterministic(t *testing.T) {
	for _, id := range []string{"T1", "T17", "T21", "T53", "T56", "T62", "T70"} {
		picked, err := Pick(All(), []string{id})
		if err != nil {
			t.Fatal(err)
		}
		once, again := drill.Run(picked[0], drill.Options{Seed: 7}), drill.Run(picked[0], drill.Options{Seed: 7})
		if d := cmp.Diff(once, again); d != "" {
			t.Errorf("%s differs when it is played again (-once +again):\n%s", id, d)
		}
	}
}

// TestList: drills are in the order of their numbers, each once, and each is
// either played or says what it needs.
func TestList(t *testing.T) {
	last := 0
	for _, d := range All() {
		n := number(d.ID)
		if n <= last {
			t.Errorf("%s comes after T%d", d.ID, last)
		}
		last = n
		if d.Threat == "" || (d.Play == nil) != (d.Needs != "") {
			t.Errorf("%s: threat %q, needs %q, can be played %v", d.ID, d.Threat, d.Needs, d.Play != nil)
		}
	}
}

func TestPick(t *testing.T) {
	list := []drill.Drill{{ID: "T1"}, {ID: "T2"}, {ID: "T9"}, {ID: "T17"}}
	for _, tt := range []struct {
		names []string
		want  []string
	}{
		{[]string{"all"}, []string{"T1", "T2", "T9", "T17"}},
		{[]string{"T17"}, []string{"T17"}},
		{[]string{"17", "t1"}, []string{"T1", "T17"}},
		{[]string{"T2-T16"}, []string{"T2", "T9"}},
		{[]string{"T1", "1"}, []string{"T1"}},
		{[]string{"T3"}, nil},
		{[]string{"T9-T2"}, nil},
		{[]string{"T3-T8"}, nil},
		{[]string{"every"}, nil},
		{[]string{""}, nil},
	} {
		picked, err := Pick(list, tt.names)
		var got []string
		for _, d := range picked {
			got = append(got, d.ID)
		}
		if (err != nil) != (tt.want == nil) || !slices.Equal(got, tt.want) {
			t.Errorf("Pick(%q) = %q, %v, want %q", tt.names, got, err, tt.want)
		}
	}
}

// TestParseControl: an almost correct name is rejected with a list of possible names.
func TestParseControl(t *testing.T) {
	for name, want := range map[string]string{"m_key": "", "mkey": "names all", "key_leas": "is it key_leases?", "m_keys": "is it m_key?", "": "names all"} {
		got, err := drill.ParseControl(drill.Controls(), name)
		if want == "" && (err != nil || string(got) != name) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
}
