// Command house prints what is large in the project: types by their methods, packages by their lines, and arrows between the
// files of a package that are part of a circle.
//
// A type may have 80 methods and a package 6,000 lines. known.txt has those that are larger, each with its size, which may
// only fall: more is an error, and so is less until -update has written it down. Tests are not counted.
//
//	go run ./packaging/house [-update]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	mostMethods = 80
	mostLines   = 6000
	shown       = 8 // rows of each table
	knownFile   = "packaging/house/known.txt"
)

func main() {
	update := flag.Bool("update", false, "write sizes down that are lower than before")
	flag.Parse()
	os.Exit(run(*update, os.Stdout, os.Stderr))
}

// run returns the exit status: 0, 1 where something is larger than it may be, 2 for an error.
func run(update bool, stdout, stderr io.Writer) int {
	sizes, err := measure("./...")
	if err != nil {
		fmt.Fprintf(stderr, "house: %v\n", err)
		return 2
	}
	table(stdout, "methods of a type", sizes.methods)
	table(stdout, "lines of a package", sizes.lines)
	table(stdout, "arrows in circles between the files of a package", sizes.circles)

	text, err := os.ReadFile(knownFile)
	if err != nil {
		fmt.Fprintf(stderr, "house: %v: run it in the root of the repository\n", err)
		return 2
	}
	known, err := parseKnown(string(text))
	if err != nil {
		fmt.Fprintf(stderr, "house: %s: %v\n", knownFile, err)
		return 2
	}
	large := sizes.large()
	status := 0
	for _, l := range compare(known, large) {
		fmt.Fprintln(stdout, l)
		status = 1
	}
	if status == 0 && update {
		if err := os.WriteFile(knownFile, []byte(formatKnown(large)), 0o644); err != nil {
			fmt.Fprintf(stderr, "house: %v\n", err)
			return 2
		}
	}
	if status == 0 && !update && formatKnown(large) != string(text) {
		fmt.Fprintf(stdout, "sizes fell: run \"go run ./packaging/house -update\"\n")
		return 1
	}
	return status
}

// table prints the largest of some sizes.
func table(w io.Writer, title string, sizes map[string]int) {
	type row struct {
		name string
		size int
	}
	var rows []row
	sum := 0
	for name, size := range sizes {
		rows = append(rows, row{name, size})
		sum += size
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(b.size-a.size, cmp.Compare(a.name, b.name)) })
	fmt.Fprintf(w, "%s (%d in all, %d together)\n", title, len(rows), sum)
	for _, r := range rows[:min(shown, len(rows))] {
		fmt.Fprintf(w, "  %6d %s\n", r.size, r.name)
	}
}
