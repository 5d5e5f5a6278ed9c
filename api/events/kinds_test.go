package events

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
)

const catalogue = "../../docs/reference/events.md"

var update = flag.Bool("update", false, "write the page of events")

// TestCatalogueIsDocumented compares the page of all types with the code; -update writes it.
func TestCatalogueIsDocumented(t *testing.T) {
	t.Parallel()
	want := document()
	if *update {
		if err := os.WriteFile(catalogue, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(catalogue)
	if err != nil || string(got) != want {
		t.Errorf("%s is not the catalogue of the code (%v): go test ./api/events -run Catalogue -update", catalogue, err)
	}
}

func document() string {
	var b strings.Builder
	b.WriteString(`# Catalogue of events

All types of [events](../operate/events.md) of the service. A type, its severity and its causes do not change from release to
release. This page is made of the code, by ` + "`go test ./api/events -run Catalogue -update`" + `.

About: the object of the event, which the audit log names, too. Journal: "each" time is written to the audit log and the journal;
"sparse" is the 1st, 2nd, 5th, 10th, 20th time and so on, and the first after a quiet day. Lists and streams have each time, counted.

| Event | Severity | Causes | About | Journal | What happened | What to do |
|---|---|---|---|---|---|---|
`)
	all := Kinds()
	slices.SortFunc(all, func(a, b Kind) int { return cmp.Compare(a.Type, b.Type) })
	for i := range all {
		k := &all[i]
		what, often := k.What, "each"
		if k.Page != "" {
			what = fmt.Sprintf("%s ([more](../%s))", k.What, k.Page)
		}
		if k.Often {
			often = "sparse"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s | %s | %s |\n", k.Type, k.Severity, strings.Join(k.Causes, "`, `"), cmp.Or(k.About, "host"), often, what, cmp.Or(k.Cure, "nothing"))
	}
	return b.String()
}

// What is bad news has a cure, and names and texts have their form.
func TestCatalogueIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range Kinds() {
		switch {
		case seen[k.Type] || strings.ToLower(k.Type) != k.Type || !strings.Contains(k.Type, "."):
			t.Errorf("%s: want area.what, once", k.Type)
		case rank(k.Severity) < 0 || k.What == "" || len(k.Causes) == 0:
			t.Errorf("%s has severity %q, meaning %q, causes %q", k.Type, k.Severity, k.What, k.Causes)
		case rank(k.Severity) >= rank(Warning) && k.Cure == "":
			t.Errorf("%s is %s, and says nothing of what to do", k.Type, k.Severity)
		case strings.ContainsAny(k.What+k.Cure, "|\n") || len(k.Cure) > maxText:
			t.Errorf("%s: a text does not fit", k.Type)
		}
		seen[k.Type] = true
	}
}

// An event that does not say what to do has the cure of the catalogue.
func TestCureOfTheCatalogue(t *testing.T) {
	t.Parallel()
	s := newStore()
	e := changed("h1")
	e.Do = ""
	if err := tell(t, s, start, e); err != nil {
		t.Fatal(err)
	}
	k, _ := KindOf(LockChanged)
	if got := list(t, s, v1.EventQuery{}).Items[0].Do; got != k.Cure || got == "" {
		t.Errorf("what to do: %q, want %q", got, k.Cure)
	}
}
