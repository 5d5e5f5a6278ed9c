package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// parseKnown reads the sizes that are known to be too large: "type NAME SIZE" or "package NAME SIZE".
func parseKnown(text string) (map[string]int, error) {
	known := map[string]int{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		size, err := strconv.Atoi(line[at+1:])
		name := line[:max(at, 0)]
		if kind, _, ok := strings.Cut(name, " "); err != nil || size <= 0 || !ok || kind != "type" && kind != "package" || known[name] != 0 {
			return nil, fmt.Errorf("line %d: %q: want type or package, its name and its size, each once", n, line)
		}
		known[name] = size
	}
	return known, nil
}

// formatKnown writes sizes as parseKnown reads them.
func formatKnown(large map[string]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Types of more than %d methods and packages of more than %d lines. Sizes may only fall.\n", mostMethods, mostLines)
	for _, name := range slices.Sorted(maps.Keys(large)) {
		fmt.Fprintf(&b, "%s %d\n", name, large[name])
	}
	return b.String()
}

// compare returns a line for each size that is larger than it may be.
func compare(known, large map[string]int) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(large)) {
		if was := known[name]; was == 0 {
			out = append(out, fmt.Sprintf("%s: %d is too large: a type may have %d methods, a package %d lines", name, large[name], mostMethods, mostLines))
		} else if large[name] > was {
			out = append(out, fmt.Sprintf("%s: %d, and %d was known: it may only fall", name, large[name], was))
		}
	}
	return out
}
