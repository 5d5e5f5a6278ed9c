package host

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func TestShowImportStaysShort(t *testing.T) {
	var r v1.ImportReport
	for i := range 3000 {
		r.Added = append(r.Added, fmt.Sprintf("h%d", i))
	}
	var out bytes.Buffer
	env := cli.New(nil, &out, nil)
	if err := env.Print(&r, func(w *cli.Columns) { showImport(w, &r) }); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n > mostListed+5 {
		t.Errorf("got %d lines, want at most %d", n, mostListed+5)
	}
	for _, want := range []string{"3000 hosts new", "h19", "and 2980 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}

// TestYAMLNamesNoForm checks that an import of YAML is one that a service takes which knows no forms.
func TestYAMLNamesNoForm(t *testing.T) {
	for form, want := range map[string]string{formYAML: "", "netbox": "netbox"} {
		s := sources{form: form}
		files, err := s.read(cli.New(strings.NewReader("hosts: []\n"), io.Discard, io.Discard), []string{"-"})
		if err != nil || len(files) != 1 || files[0].Form != want {
			t.Errorf("--form %s: the files are %+v, %v; want the form %q", form, files, err, want)
		}
	}
}
