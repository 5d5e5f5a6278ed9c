package host

import (
	"bytes"
	"fmt"
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
