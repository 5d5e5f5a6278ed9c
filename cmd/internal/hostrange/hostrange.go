// Package hostrange expands ranges of host names, as schedulers write them: n[001-032,040], r[1-4]n[1-8], a,b.
package hostrange

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// Most is how many names operands have together at most.
	Most = 40_000
	// mostText bounds one operand in bytes.
	mostText = 64 << 10
	// mostDigits bounds a number.
	mostDigits = 9
)

// Expand returns the names that operands stand for, in their order, each once. A comma outside of brackets separates names. A
// number with leading zeros keeps its width. An error names the operand and what is wrong with it.
func Expand(operands []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for _, operand := range operands {
		if len(operand) > mostText {
			return nil, fmt.Errorf("a host range of %d bytes: at most %d", len(operand), mostText)
		}
		patterns, err := split(operand)
		if err != nil {
			return nil, fmt.Errorf("host range %q: %w", operand, err)
		}
		for _, p := range patterns {
			names, err := expand(p)
			if err != nil {
				return nil, fmt.Errorf("host range %q: %w", operand, err)
			}
			for _, n := range names {
				if !seen[n] {
					seen[n] = true
					out = append(out, n)
				}
			}
			if len(out) > Most {
				return nil, tooMany()
			}
		}
	}
	return out, nil
}

func tooMany() error { return fmt.Errorf("more than %d hosts", Most) }

// split returns the parts of a list that commas separate outside of brackets.
func split(s string) (parts []string, err error) {
	from, inside := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[' && inside, c == ']' && !inside:
			return nil, fmt.Errorf("%q at byte %d has no counterpart", c, i)
		case c == '[', c == ']':
			inside = !inside
		case c == ',' && !inside:
			parts, from = append(parts, s[from:i]), i+1
		}
	}
	if inside {
		return nil, fmt.Errorf("a bracket is not closed")
	}
	parts = append(parts, s[from:])
	for _, p := range parts {
		if p == "" {
			return nil, fmt.Errorf("a name is empty")
		}
	}
	return parts, nil
}

// expand returns the names of one pattern. Its brackets are in pairs.
func expand(pattern string) ([]string, error) {
	names := []string{""}
	for rest := pattern; rest != ""; {
		literal, after, ranged := strings.Cut(rest, "[")
		for i := range names {
			names[i] += literal
		}
		if !ranged {
			break
		}
		list, tail, _ := strings.Cut(after, "]")
		numbers, err := numbersOf(list)
		if err != nil {
			return nil, err
		}
		if len(names)*len(numbers) > Most {
			return nil, tooMany()
		}
		next := make([]string, 0, len(names)*len(numbers))
		for _, name := range names {
			for _, n := range numbers {
				next = append(next, name+n)
			}
		}
		names, rest = next, tail
	}
	return names, nil
}

// numbersOf returns the numbers of the inside of a bracket, as text.
func numbersOf(list string) ([]string, error) {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(item, "-")
		if !isRange {
			high = low
		}
		first, err := number(low)
		if err != nil {
			return nil, err
		}
		last, err := number(high)
		switch {
		case err != nil:
			return nil, err
		case last < first:
			return nil, fmt.Errorf("%s goes from more to less", item)
		case last-first >= Most-len(out):
			return nil, tooMany()
		}
		width := 0
		if len(low) > 1 && low[0] == '0' {
			width = len(low)
		}
		if len(high) != width && (width > 0 || high[0] == '0' && len(high) > 1) {
			return nil, fmt.Errorf("%s: both ends need the same number of digits if there are leading zeros", item)
		}
		for n := first; n <= last; n++ {
			out = append(out, fmt.Sprintf("%0*d", width, n))
		}
	}
	return out, nil
}

func number(s string) (int, error) {
	if s == "" || len(s) > mostDigits || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%q is no number of 1 to %d digits", s, mostDigits)
	}
	return strconv.Atoi(s)
}
