package clustername_test

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"portcullis/api/clustername"
	v1 "portcullis/api/v1"
)

func TestParse(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("a", clustername.MaxLabel)
	for text, want := range map[string]clustername.Name{
		"train":           {Own: "train"},
		"physics.train":   {Tenant: "physics", Own: "train"},
		"0":               {Own: "0"},
		"a-b.c-d":         {Tenant: "a-b", Own: "c-d"},
		most + "." + most: {Tenant: most, Own: most},
	} {
		got, err := clustername.Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is read as %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "train.", ".train", "a.b.c", "a..b", "Train", "a_b", "-a", "a-", "a.-b", "a-.b", "a b", "a\n", "a.b\n", "é", "a/b", "../a", "a%2eb",
		most + "a", most + "a.b", "b." + most + "a", strings.Repeat("a.", 1<<16),
	} {
		if got, err := clustername.Parse(text); !errors.Is(err, clustername.ErrForm) || got != (clustername.Name{}) {
			t.Errorf("%.80q is read as %+v, %v", text, got, err)
		}
	}
}

// TestAPIHasThePattern: requests are compared with the pattern of this package.
func TestAPIHasThePattern(t *testing.T) {
	t.Parallel()
	for field, of := range map[string]any{"Name": v1.NewCluster{}, "Cluster": v1.WantedAssignment{}} {
		f, _ := reflect.TypeOf(of).FieldByName(field)
		if got := f.Tag.Get("pattern"); got != clustername.Pattern {
			t.Errorf("%T has the pattern %s, want %s", of, got, clustername.Pattern)
		}
	}
}

// TestTwin: of a name and its twin, a credential of the tenant calls both the same.
func TestTwin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"train": "physics.train", "physics.train": "train"} {
		n, err := clustername.Parse(text)
		if got := n.Twin("physics").String(); err != nil || got != want {
			t.Errorf("the twin of %s is %s, %v, want %s", text, got, err, want)
		}
	}
}

// FuzzParse: what is read prints as it was, is what the pattern of the API has, and has parts that are labels.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"train", "physics.train", "a.b.c", ".", "a-.b", "A"} {
		f.Add(s)
	}
	pattern := regexp.MustCompile(clustername.Pattern)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := clustername.Parse(text)
		if (err == nil) != pattern.MatchString(text) {
			t.Fatalf("%q: %v, and the pattern has it: %v", text, err, err != nil)
		}
		if err != nil {
			return
		}
		if n.String() != text || len(text) > clustername.Max || !clustername.IsLabel(n.Own) || (n.Tenant != "") != strings.Contains(text, ".") {
			t.Errorf("%q is read as %+v", text, n)
		}
	})
}
