package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// finding is a word of the list in a file.
type finding struct {
	line    int
	word    string // as it is written there
	instead string
}

func (f finding) String() string { return fmt.Sprintf("%d: %q: write %s", f.line, f.word, f.instead) }

// kind is how a file is read.
type kind int

const (
	other kind = iota // not at all
	source
	document // Markdown, manual pages, shell scripts
)

// kindOf returns how a file is read. Test data and this list are not.
func kindOf(name string) kind {
	switch {
	case strings.Contains(name, "testdata/"), strings.HasPrefix(name, "packaging/words/"), strings.HasPrefix(name, "docs/benchmarks/"):
		return other
	case strings.HasSuffix(name, ".go"):
		return source
	case strings.HasSuffix(name, ".md") && name != "CHANGELOG.md", strings.HasPrefix(name, "packaging/man/"):
		return document
	}
	return other
}

// scan returns the findings of a file, in their order.
func scan(list []word, name string) ([]finding, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if kindOf(name) == source {
		return scanSource(list, name, text)
	}
	return scanText(list, 1, string(text)), nil
}

// scanText finds the words of a text that begins at a line of its file. What is quoted as code in Markdown is left out.
func scanText(list []word, line int, text string) []finding {
	var out []finding
	fenced := false
	for l := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		if !fenced && !strings.HasPrefix(l, "    ") {
			out = append(out, inLine(list, line, codeSpan.ReplaceAllString(l, "``"))...)
		}
		line++
	}
	return out
}

var codeSpan = regexp.MustCompile("`[^`]*`")

func inLine(list []word, line int, text string) []finding {
	var out []finding
	for _, w := range list {
		for _, m := range w.pattern.FindAllString(text, -1) {
			out = append(out, finding{line, m, w.instead})
		}
	}
	return out
}

// scanSource finds the words of comments, and, outside of tests, of strings that are sentences.
func scanSource(list []word, name string, text []byte) ([]finding, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") {
				continue
			}
			at := set.Position(c.Pos()).Line
			for i, line := range strings.Split(c.Text, "\n") {
				out = append(out, inLine(list, at+i, line)...)
			}
		}
	}
	if strings.HasSuffix(path.Base(name), "_test.go") {
		return out, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil || !strings.Contains(strings.TrimSpace(value), " ") {
			return true
		}
		at := set.Position(literal.Pos()).Line
		if literal.Value[0] != '`' {
			value = strings.ReplaceAll(value, "\n", " ")
		}
		for i, line := range strings.Split(value, "\n") {
			out = append(out, inLine(list, at+i, line)...)
		}
		return true
	})
	return out, nil
}
