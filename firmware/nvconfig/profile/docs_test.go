package profile_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

var update = flag.Bool("update", false, "write the list of docs/understand/lock.md")

const (
	listBegins = "<!-- list: made by go test ./firmware/nvconfig/profile -run TestDocs -update -->\n"
	listEnds   = "<!-- end of list -->\n"
)

// TestDocs holds the list of docs/understand/lock.md to Default.
func TestDocs(t *testing.T) {
	const file = "../../../docs/understand/lock.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(page), listBegins)
	_, tail, ends := strings.Cut(rest, listEnds)
	if !begins || !ends {
		t.Fatal("docs/understand/lock.md has no place for the list")
	}
	var list strings.Builder
	list.WriteString("\n| Setting | Item | Value | Need | Why |\n|---|---|---|---|---|\n")
	for _, r := range profile.Default().Rules {
		p, _ := nvconfig.LookUp(r.Parameter)
		fmt.Fprintf(&list, "| %s | %s (0x%02x, %d) | %s | %v | %s |\n", r.Parameter, p.Item.Name, uint8(p.Item.Class), p.Item.Index, r.Want, r.Need, r.Reason)
	}
	want := head + listBegins + list.String() + "\n" + listEnds + tail
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Error("docs/understand/lock.md lists something else than Default wants: go test ./firmware/nvconfig/profile -run TestDocs -update")
	}
}

// TestDocsExample reads the profile that docs/understand/lock.md shows.
func TestDocsExample(t *testing.T) {
	page, err := os.ReadFile("../../../docs/understand/lock.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	p, err := profile.Load([]byte(text))
	if !found || err != nil {
		t.Fatalf("found %v: %v", found, err)
	}
	if r, _ := p.Rule("NUM_OF_VFS"); r.Want != "16" || !r.Site {
		t.Errorf("%+v", r)
	}
}
