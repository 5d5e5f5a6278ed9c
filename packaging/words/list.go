package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// word is what is not written, and what is written instead.
type word struct {
	pattern *regexp.Regexp
	instead string
}

// parseList reads a list: a pattern (RE2, whole words, upper and lower case alike), a tab, and what to write instead.
// Lines that begin with # are comments.
func parseList(text string) ([]word, error) {
	var list []word
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, instead, ok := strings.Cut(line, "\t")
		if instead = strings.TrimSpace(instead); !ok || pattern == "" || instead == "" {
			return nil, fmt.Errorf("line %d: want a pattern, a tab, and what to write instead", n)
		}
		re, err := regexp.Compile(`(?i:\b(?:` + pattern + `)\b)`)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list = append(list, word{re, instead})
	}
	if len(list) == 0 {
		return nil, errors.New("it has no words")
	}
	return list, nil
}
