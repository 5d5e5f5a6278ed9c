package native

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// scanner reads JSON into a tree, with lines.
type scanner struct {
	data string
	at   int
	line int
	seen int // up to where lines were counted
}

// syntaxError is where a file is no JSON.
type syntaxError struct {
	line  int
	cause string
}

func (e *syntaxError) Error() string { return e.cause }

func (s *scanner) lineNow() int {
	at := min(s.at, len(s.data)) // a backslash may be the last byte
	s.line += strings.Count(s.data[s.seen:at], "\n")
	s.seen = at
	return s.line + 1
}

func (s *scanner) fail(format string, args ...any) error {
	return &syntaxError{s.lineNow(), fmt.Sprintf(format, args...)}
}

// parseJSON reads one value and demands that nothing follows.
func parseJSON(data string) (value, error) {
	s := &scanner{data: data}
	v, err := s.value(0)
	if err != nil {
		return v, err
	}
	if s.space(); s.at < len(s.data) {
		return v, s.fail("something follows the end")
	}
	return v, nil
}

func (s *scanner) space() {
	for s.at < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.at]) >= 0 {
		s.at++
	}
}

// next returns the next byte that is no space, 0 at the end.
func (s *scanner) next() byte {
	if s.space(); s.at == len(s.data) {
		return 0
	}
	return s.data[s.at]
}

func (s *scanner) value(depth int) (value, error) {
	c := s.next()
	v := value{line: s.lineNow()}
	switch {
	case depth > maxDepth:
		return v, s.fail("nested deeper than %d", maxDepth)
	case c == 0 && s.at == len(s.data):
		return v, s.fail("the file ends in the middle: it is cut off")
	case c == '{':
		v.shape = table
		return v, s.members(&v, depth, '}')
	case c == '[':
		v.shape = list
		return v, s.members(&v, depth, ']')
	case c == '"':
		v.text = true
		var err error
		v.word, err = s.quoted()
		return v, err
	default:
		return v, s.bare(&v)
	}
}

// members reads the values between brackets.
func (s *scanner) members(v *value, depth int, end byte) error {
	s.at++
	for first := true; ; first = false {
		c := s.next()
		if c == end {
			s.at++
			return nil
		}
		if !first {
			if c != ',' {
				return s.fail("want , or %c", end)
			}
			s.at++
			c = s.next()
		}
		if v.shape == table {
			if c != '"' {
				return s.fail("want a key in quotes")
			}
			key, err := s.quoted()
			if err != nil {
				return err
			}
			if s.next() != ':' {
				return s.fail("want : after key %.40q", key)
			}
			s.at++
			v.keys = append(v.keys, key)
		}
		item, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
}

// quoted reads a string.
func (s *scanner) quoted() (string, error) {
	start := s.at
	plain := true
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '\\':
			plain = false
			s.at++
		case c < ' ':
			return "", s.fail("a string holds a control character or has no end")
		case c == '"':
			s.at++
			raw := s.data[start:s.at]
			if plain && utf8.ValidString(raw) {
				return raw[1 : len(raw)-1], nil
			}
			var out string
			if !utf8.ValidString(raw) || json.Unmarshal([]byte(raw), &out) != nil {
				return "", s.fail("string %.40q is no JSON", raw)
			}
			return out, nil
		}
	}
	return "", s.fail("the file ends in the middle: it is cut off")
}

// bare reads a number, true or false.
func (s *scanner) bare(v *value) error {
	start := s.at
	for s.at < len(s.data) && strings.IndexByte(" \t\r\n,]}:", s.data[s.at]) < 0 {
		s.at++
	}
	v.word = s.data[start:s.at]
	if v.word == "true" || v.word == "false" {
		return nil
	}
	number := v.word != "" && (v.word == "0" || v.word[0] != '0')
	for i := range len(v.word) {
		number = number && v.word[i] >= '0' && v.word[i] <= '9'
	}
	if !number {
		return s.fail("%.40q: want a string in quotes, a whole number, true or false", v.word)
	}
	return nil
}
