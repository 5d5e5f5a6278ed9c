package packaging

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	packageName = regexp.MustCompile(`(?m)^name: (\S+)$`)
	packaged    = regexp.MustCompile(`(?m)^  - \{src: (\S+), dst: (\S+?)[,}]`)
	indented    = regexp.MustCompile(`(?m)^    .*$`)
	inCode      = regexp.MustCompile("`[^`\n]*`")
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// linksOf returns the targets of a page's relative links, without fragments. It ignores code.
func linksOf(page []byte) (out []string) {
	text := inCode.ReplaceAll(indented.ReplaceAll(page, nil), nil)
	for _, m := range pageLink.FindAllSubmatch(text, -1) {
		to, _, _ := strings.Cut(string(m[1]), "#")
		if to != "" && !strings.Contains(to, "://") && !strings.HasPrefix(to, "mailto:") {
			out = append(out, to)
		}
	}
	return out
}

// brokenLinks returns the links of the pages of a package, PAGE: LINK, whose targets the package does not ship. files maps
// the shipped paths to their sources; read reads the source of a page.
func brokenLinks(files map[string]string, read func(src string) ([]byte, error)) (broken []string, pages int, err error) {
	for dst, src := range files {
		if path.Ext(dst) != ".md" {
			continue
		}
		pages++
		page, err := read(src)
		if err != nil {
			return nil, 0, err
		}
		for _, to := range linksOf(page) {
			if files[path.Join(path.Dir(dst), to)] == "" {
				broken = append(broken, src+": "+to)
			}
		}
	}
	return broken, pages, nil
}

// TestPackagedPagesLeadToPackagedPages: each relative link of a page that a package ships leads to a file that the same
// package ships.
func TestPackagedPagesLeadToPackagedPages(t *testing.T) {
	all, err := os.ReadFile("../nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := func(src string) ([]byte, error) { return os.ReadFile(path.Join("..", src)) }
	total := 0
	for _, document := range strings.Split(string(all), "\n---\n") {
		name := packageName.FindStringSubmatch(document)
		if name == nil {
			t.Fatalf("a document of nfpm.yaml has no name:\n%s", document)
		}
		files := map[string]string{}
		for _, m := range packaged.FindAllStringSubmatch(document, -1) {
			files[m[2]] = m[1]
		}
		if n := strings.Count(document, ".md"); n != 0 && n != 2*strings.Count(strings.Join(sources(files), "\n"), ".md") {
			t.Errorf("%s: %d times .md in its document, and not each is in a line with src and dst", name[1], n)
		}
		broken, pages, err := brokenLinks(files, read)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range broken {
			t.Errorf("package %s: %s leads to what it does not ship: ship it, or say where it is without a link", name[1], b)
		}
		total += pages
	}
	if total < 15 {
		t.Errorf("%d pages looked at, want those of all packages", total)
	}
}

func sources(files map[string]string) (out []string) {
	for _, src := range files {
		out = append(out, src)
	}
	return out
}

func TestBrokenLinks(t *testing.T) {
	pages := map[string]string{
		"docs/a.md": "see [b](b.md#part), [the same page](#here), [c](sub/c.md), [web](https://example.org/x.md)\n\n    [code](no.md)\n\n`[x](no.md)`\n",
		"docs/c.md": "[back](../a.md) and [away](../../elsewhere.md)",
	}
	read := func(src string) ([]byte, error) { return []byte(pages[src]), nil }
	files := map[string]string{"/doc/a.md": "docs/a.md", "/doc/sub/c.md": "docs/c.md"}
	broken, n, err := brokenLinks(files, read)
	if err != nil || n != 2 || len(broken) != 2 {
		t.Fatalf("%d pages, broken %q, %v; want b.md and elsewhere.md", n, broken, err)
	}
	files["/doc/b.md"] = "docs/b.md"
	files["/elsewhere.md"] = "docs/b.md"
	if broken, _, _ := brokenLinks(files, read); len(broken) != 0 {
		t.Errorf("all shipped, and broken: %q", broken)
	}
}
