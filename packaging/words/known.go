package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// parseKnown reads how many findings of each file are known: a count, a space, and a file.
func parseKnown(text string) (map[string]int, error) {
	known := map[string]int{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		count, file, ok := strings.Cut(line, " ")
		number, err := strconv.Atoi(count)
		if !ok || err != nil || number <= 0 || known[file] != 0 {
			return nil, fmt.Errorf("line %d: %q: want a count above 0 and a file, each file once", n, line)
		}
		known[file] = number
	}
	return known, nil
}

// formatKnown writes counts as parseKnown reads them.
func formatKnown(found map[string][]finding) string {
	var b strings.Builder
	b.WriteString("# Findings that were there when list.txt was made, by file. Counts may only fall.\n")
	for _, file := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "%d %s\n", len(found[file]), file)
	}
	return b.String()
}

// compare returns the files that have more findings than known, and those that have fewer.
func compare(known map[string]int, found map[string][]finding) (more, less []string) {
	for file, all := range found {
		if len(all) > known[file] {
			more = append(more, file)
		}
	}
	for file, n := range known {
		if len(found[file]) < n {
			less = append(less, file)
		}
	}
	slices.Sort(more)
	slices.Sort(less)
	return more, less
}
