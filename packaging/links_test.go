package packaging

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	heading     = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	inHeading   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors returns the fragments to which links into a page may lead, as GitHub makes them of headings.
func anchors(page []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllSubmatch(page, -1) {
		text := inHeading.ReplaceAllString(string(m[1]), "$1")
		out[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")] = true
	}
	return out
}

func TestAnchors(t *testing.T) {
	got := anchors([]byte("# One\n\n## Two `words`, and a [link](x.md)\n\ntext # none\n"))
	for _, want := range []string{"one", "two-words-and-a-link"} {
		if !got[want] {
			t.Errorf("no anchor %q in %v", want, got)
		}
	}
	if len(got) != 2 {
		t.Errorf("%d anchors, want 2: %v", len(got), got)
	}
}

// TestLinks follows each relative link of each page of the repository, to the file and to the heading in it.
func TestLinks(t *testing.T) {
	links := 0
	err := filepath.WalkDir("..", func(page string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "dist" || page != ".." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case filepath.Ext(page) != ".md":
			return nil
		}
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, m := range pageLink.FindAllSubmatch(inCode.ReplaceAll(indented.ReplaceAll(text, nil), nil), -1) {
			link := string(m[1])
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			links++
			name, fragment, _ := strings.Cut(link, "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			content, err := os.ReadFile(target)
			if info, e := os.Stat(target); e == nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: link %q: %v", page, link, err)
			} else if fragment != "" && !anchors(content)[fragment] {
				t.Errorf("%s: link %q: %s has no heading for it", page, link, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links == 0 {
		t.Error("there are no links: this test looks in the wrong place")
	}
}
