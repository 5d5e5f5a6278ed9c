package hostrange_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"portcullis/cmd/internal/hostrange"
	"portcullis/packaging/testenv"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"n1", "n1"},
		{"n1 n2,n3 n1", "n1 n2 n3"},
		{"n[1-3]", "n1 n2 n3"},
		{"n[001-003,010]", "n001 n002 n003 n010"},
		{"n[9-11]", "n9 n10 n11"},
		{"n[08-11]x,q", "n08x n09x n10x n11x q"},
		{"r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1"},
		{"[1-2]", "1 2"},
		{"n[5]", "n5"},
		{"n[0]", "n0"},
		{"n[0-2]", "n0 n1 n2"},
		{"rack-7.example", "rack-7.example"},
	} {
		got, err := hostrange.Expand(strings.Fields(tt.in))
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %v, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"n[1-3":                  "not closed",
		"n1-3]":                  "counterpart",
		"n[[1]]":                 "counterpart",
		"n[3-1]":                 "from more to less",
		"n[]":                    "no number",
		"n[a-b]":                 "no number",
		"n[1-]":                  "no number",
		"n[1--2]":                "no number",
		"n[+1]":                  "no number",
		"n[001-32]":              "same number of digits",
		"n[1-032]":               "same number of digits",
		"a,,b":                   "empty",
		",":                      "empty",
		"n[0-40000]":             "more than 40000",
		"n[1-300]m[1-300]":       "more than 40000",
		"n[1-999999999]":         "more than 40000",
		"n[1-9999999999]":        "digits",
		"a[1-30000],b[1-30000]":  "more than 40000",
		strings.Repeat("x", 1e5): "bytes",
	} {
		if got, err := hostrange.Expand([]string{in}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %d names, error %v, want one about %q", in, len(got), err, want)
		}
	}
	if got, err := hostrange.Expand([]string{""}); err == nil {
		t.Errorf("an empty operand: %v", got)
	}
}

// nodeset of ClusterShell expands the same ranges to the same names.
func TestAgreesWithNodeset(t *testing.T) {
	t.Parallel()
	nodeset := testenv.Program(t, "nodeset")
	for _, in := range []string{
		"n1", "n[1-3]", "n[001-003,010]", "n[9-11]", "n[08-11]x,q", "r[1-2]n[0-1]", "n[5]", "n[1-20]", "gpu[0001-0128]", "r[01-12]u[1-4]-ib", "a,b,a", "n[1,3,5-7]",
	} {
		out, err := exec.CommandContext(t.Context(), nodeset, "-e", in).Output()
		if err != nil {
			t.Fatalf("nodeset %s: %v", in, err)
		}
		want := strings.Fields(string(out))
		got, err := hostrange.Expand([]string{in})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, nodeset says %v", in, got, want)
		}
	}
	for _, in := range []string{"n[1-3", "n[5-3]", "n[]", "n[a-b]"} {
		if exec.CommandContext(t.Context(), nodeset, "-e", in).Run() == nil {
			t.Errorf("nodeset takes %s", in)
		}
		if _, err := hostrange.Expand([]string{in}); err == nil {
			t.Errorf("%s is taken", in)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"n[001-032,040]", "r[1-4]n[1-8]", "a,b", "n[1-", "]["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := hostrange.Expand([]string{s})
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > hostrange.Most {
			t.Fatalf("%d names", len(names))
		}
		seen := map[string]bool{}
		for _, n := range names {
			if n == "" || strings.ContainsAny(n, "[],") || seen[n] {
				t.Fatalf("name %q", n)
			}
			seen[n] = true
		}
		again, err := hostrange.Expand(names)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(names) {
			t.Fatalf("names expand to %v, %v", again, err)
		}
	})
}
