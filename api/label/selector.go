package label

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a selector.
const (
	MostSelector     = 1024 // bytes
	MostRequirements = 32
)

// operator is how a requirement compares.
type operator uint8

const (
	exists  operator = iota // the key is there
	absent                  // the key is not there
	among                   // the key is there, with one of the values
	outside                 // the key is not there, or with none of the values
)

// requirement is one condition about one key.
type requirement struct {
	key    string
	op     operator
	values []string // sorted, each once; none for exists and absent
}

// Selector chooses objects by their labels: those that meet all its requirements. The zero Selector chooses every object.
type Selector struct{ all []requirement }

// Empty reports whether the selector chooses every object.
func (s Selector) Empty() bool { return len(s.all) == 0 }

// Matches reports whether an object with these labels is chosen.
func (s Selector) Matches(labels Set) bool {
	for i := range s.all {
		if !s.all[i].matches(labels) {
			return false
		}
	}
	return true
}

func (r *requirement) matches(labels Set) bool {
	value, has := labels[r.key]
	switch r.op {
	case exists:
		return has
	case absent:
		return !has
	case among:
		return has && slices.Contains(r.values, value)
	default:
		return !has || !slices.Contains(r.values, value)
	}
}

// String returns the selector in its canonical form, which Parse reads: requirements by key, values sorted, and each with the
// shortest operator. Selectors that say the same in other words or in another order have the same form.
func (s Selector) String() string {
	parts := make([]string, len(s.all))
	for i := range s.all {
		parts[i] = s.all[i].String()
	}
	return strings.Join(parts, ",")
}

// Among names, for the cursors of a list, what the selector chooses of that list. So a cursor leads on in the list that it is of, and
// is refused with another selector, which would leave out objects unnoticed.
func (s Selector) Among(list string) string {
	if s.Empty() {
		return list
	}
	return list + "?" + digest(s.String())
}

// String returns the requirement as a selector of one.
func (r *requirement) String() string {
	switch {
	case r.op == exists:
		return r.key
	case r.op == absent:
		return "!" + r.key
	case r.op == among && len(r.values) == 1:
		return r.key + "=" + r.values[0]
	case r.op == among:
		return r.key + " in (" + strings.Join(r.values, ",") + ")"
	case len(r.values) == 1:
		return r.key + "!=" + r.values[0]
	default:
		return r.key + " notin (" + strings.Join(r.values, ",") + ")"
	}
}

func compare(a, b requirement) int {
	return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.op, b.op), slices.Compare(a.values, b.values))
}

// Parse reads a selector: requirements separated by commas, which all have to be met.
//
//	a=b  a==b  a!=b  a in (x,y)  a notin (x,y)  a  !a
//
// An object without the key meets a!=b and notin, as in Kubernetes. The empty text chooses every object. The error says what is
// wrong at which byte, counted from 1.
func Parse(text string) (Selector, error) {
	if len(text) > MostSelector {
		return Selector{}, fmt.Errorf("a selector of %d bytes: it has %d at most", len(text), MostSelector)
	}
	p := &parser{text: text}
	if p.next(); p.kind == end {
		return Selector{}, nil
	}
	var all []requirement
	for {
		r, err := p.requirement()
		if err != nil {
			return Selector{}, err
		}
		if all = append(all, r); len(all) > MostRequirements {
			return Selector{}, fmt.Errorf("a selector of more than %d requirements", MostRequirements)
		}
		if p.kind == end {
			break
		}
		if err := p.take(","); err != nil {
			return Selector{}, err
		}
	}
	slices.SortFunc(all, compare)
	return Selector{slices.CompactFunc(all, func(a, b requirement) bool { return compare(a, b) == 0 })}, nil
}

// kind is what a token is.
type kind uint8

const (
	end    kind = iota
	symbol      // one of = == != ! ( ) ,
	text        // a key, a value, in or notin
	bad         // a character that no token has
)

// parser reads tokens one by one.
type parser struct {
	text  string
	at    int // the token after this one is read from here
	begin int // of this token
	kind  kind
	token string
}

// next reads the next token.
func (p *parser) next() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	p.begin = p.at
	rest := p.text[p.at:]
	switch {
	case rest == "":
		p.kind, p.token = end, "end"
	case strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!="):
		p.kind, p.token = symbol, rest[:2]
	case strings.IndexByte("=!(),", rest[0]) >= 0:
		p.kind, p.token = symbol, rest[:1]
	default:
		n := strings.IndexAny(rest, "=!(),<> \t\r\n")
		if n < 0 {
			n = len(rest)
		}
		p.kind, p.token = text, rest[:n]
		if n == 0 {
			p.kind, p.token = bad, rest[:1]
		}
	}
	p.at += len(p.token)
	if p.kind == end {
		p.at = len(p.text)
	}
}

// wants is the error that something else stands here.
func (p *parser) wants(what string) error {
	if p.kind == end {
		return fmt.Errorf("the selector ends at byte %d: want %s", p.begin+1, what)
	}
	return fmt.Errorf("selector, byte %d: %s: want %s", p.begin+1, quoted(p.token), what)
}

// take reads a symbol.
func (p *parser) take(s string) error {
	if p.kind != symbol || p.token != s {
		return p.wants(`"` + s + `"`)
	}
	p.next()
	return nil
}

func (p *parser) requirement() (r requirement, err error) {
	if p.kind == symbol && p.token == "!" {
		r.op = absent
		p.next()
	}
	if p.kind != text {
		return r, p.wants("the key of a label")
	}
	r.key = p.token
	if err := CheckKey(r.key); err != nil {
		return r, fmt.Errorf("selector, byte %d: %w", p.begin+1, err)
	}
	p.next()
	if r.op == absent || p.kind == end || p.kind == symbol && p.token == "," {
		return r, nil
	}
	sets := p.kind == text && (p.token == "in" || p.token == "notin")
	switch {
	case sets && p.token == "in", p.kind == symbol && (p.token == "=" || p.token == "=="):
		r.op = among
	case sets, p.kind == symbol && p.token == "!=":
		r.op = outside
	default:
		return r, p.wants("=, ==, !=, in or notin")
	}
	p.next()
	if sets {
		r.values, err = p.list()
		return r, err
	}
	value, err := p.value()
	r.values = []string{value}
	return r, err
}

// list reads values in parentheses. Nothing between two commas is the empty value.
func (p *parser) list() ([]string, error) {
	if err := p.take("("); err != nil {
		return nil, err
	}
	var values []string
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		if p.kind == symbol && p.token == "," {
			p.next()
			continue
		}
		slices.Sort(values)
		return slices.Compact(values), p.take(")")
	}
}

// value reads a value, which is empty where another token stands.
func (p *parser) value() (string, error) {
	if p.kind != text {
		return "", nil
	}
	v := p.token
	if err := CheckValue(v); err != nil {
		return "", fmt.Errorf("selector, byte %d: %w", p.begin+1, err)
	}
	p.next()
	return v, nil
}
