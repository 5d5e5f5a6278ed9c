// Command words finds words that the project does not use in comments, messages, help texts and documents, and names a
// better one for each. list.txt has the words.
//
// known.txt counts what was there when the list was made, file by file. A count may only fall: more is an error, and so is
// less until -update has written it down.
//
//	go run ./packaging/words [-update] [FILE...]
//
// Without files it reads all that git knows. With files it prints each finding in them and compares no counts.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

//go:embed list.txt
var listText string

// knownFile is where the counts are, below the root of the repository.
const knownFile = "packaging/words/known.txt"

func main() {
	update := flag.Bool("update", false, "write the counts down that are lower than before")
	flag.Parse()
	os.Exit(run(*update, flag.Args(), os.Stdout, os.Stderr))
}

// run returns the exit status: 0 where no file has more findings than known, 1 where one has, 2 for an error.
func run(update bool, files []string, stdout, stderr io.Writer) int {
	list, err := parseList(listText)
	if err != nil {
		fmt.Fprintf(stderr, "words: list.txt: %v\n", err)
		return 2
	}
	if len(files) > 0 {
		return show(list, files, stdout, stderr)
	}
	files, err = tracked()
	if err != nil {
		fmt.Fprintf(stderr, "words: %v\n", err)
		return 2
	}
	found := map[string][]finding{}
	for _, file := range files {
		all, err := scan(list, file)
		if err != nil {
			fmt.Fprintf(stderr, "words: %v\n", err)
			return 2
		}
		if len(all) > 0 {
			found[file] = all
		}
	}
	text, err := os.ReadFile(knownFile)
	if err != nil {
		fmt.Fprintf(stderr, "words: %v: run it in the root of the repository\n", err)
		return 2
	}
	known, err := parseKnown(string(text))
	if err != nil {
		fmt.Fprintf(stderr, "words: %s: %v\n", knownFile, err)
		return 2
	}
	more, less := compare(known, found)
	for _, file := range more {
		fmt.Fprintf(stdout, "%s: %d findings, and %d were known:\n", file, len(found[file]), known[file])
		for _, f := range found[file] {
			fmt.Fprintf(stdout, "  %v\n", f)
		}
	}
	if len(more) > 0 {
		return 1
	}
	if len(less) == 0 {
		return 0
	}
	if !update {
		fmt.Fprintf(stdout, "fewer findings than known in %s: run \"go run ./packaging/words -update\"\n", strings.Join(less, ", "))
		return 1
	}
	if err := os.WriteFile(knownFile, []byte(formatKnown(found)), 0o644); err != nil {
		fmt.Fprintf(stderr, "words: %v\n", err)
		return 2
	}
	return 0
}

// show prints the findings of some files.
func show(list []word, files []string, stdout, stderr io.Writer) int {
	status := 0
	for _, file := range files {
		all, err := scan(list, file)
		if err != nil {
			fmt.Fprintf(stderr, "words: %v\n", err)
			return 2
		}
		for _, f := range all {
			fmt.Fprintf(stdout, "%s:%v\n", file, f)
			status = 1
		}
	}
	return status
}

// tracked returns the files of the repository that are read: sources, documents and manual pages.
func tracked() ([]string, error) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []string
	for name := range bytes.SplitSeq(bytes.TrimRight(out, "\x00"), []byte{0}) {
		if _, err := os.Stat(string(name)); err == nil && kindOf(string(name)) != other {
			files = append(files, string(name))
		}
	}
	return files, nil
}
