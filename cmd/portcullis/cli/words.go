package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/terminal"
	"portcullis/fabricsm/ib"
)

// Count returns a number and the name of the counted things: "1 switch", "3 switches".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "h") {
		return strconv.Itoa(n) + " " + what + "es"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// NodeCounts returns how many nodes there are of each type.
func NodeCounts(n v1.NodeCounts) string {
	text := Count(n.Switches, "switch") + ", " + Count(n.CAs, "CA")
	if n.Routers > 0 {
		text += ", " + Count(n.Routers, "router")
	}
	return text
}

// PortCounts returns how many ports have a cable, and how many are in each state.
func PortCounts(p *v1.PortCounts) string {
	text := strconv.Itoa(p.Cabled) + " with a cable"
	for _, s := range []struct {
		n    int
		name string
	}{{p.Active, "Active"}, {p.Armed, "Armed"}, {p.Init, "Init"}, {p.Down, "Down"}, {p.Unread, "not read yet"}} {
		if s.n > 0 {
			text += fmt.Sprintf(", %d %s", s.n, s.name)
		}
	}
	return text
}

// Seconds returns a duration with a suitable unit.
func Seconds(s float64) string {
	switch {
	case s < 0.001:
		return fmt.Sprintf("%.0f us", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.1f ms", s*1e3)
	default:
		return fmt.Sprintf("%.2f s", s)
	}
}

// Plain returns a text without characters that a terminal obeys.
func Plain(s string) string { return terminal.Plain(s) }

// PlainLines is Plain for a text of several lines.
func PlainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Plain(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// Stamp returns a time in UTC, and "" for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// PKey returns a P_Key, and "" for one that is not valid.
func PKey(k ib.PKey) string {
	if !k.Valid() {
		return ""
	}
	return k.String()
}

// PKeys returns P_Keys with spaces between them.
func PKeys(keys []ib.PKey) string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = k.String()
	}
	return strings.Join(words, " ")
}

// Place returns a switch port, and "" for none.
func Place(p ib.Place) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

// YesNo returns "yes" or "no".
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// GUID returns a GUID, and "" for 0.
func GUID(g ib.GUID) string {
	if g == 0 {
		return ""
	}
	return g.String()
}

// LID returns a LID, and "" for 0.
func LID(l ib.LID) string {
	if l == 0 {
		return ""
	}
	return fmt.Sprint(l)
}

// OptionalPKey reads a P_Key that may be left out.
func OptionalPKey(text string) (*ib.PKey, error) {
	if text == "" {
		return nil, nil
	}
	k, err := ib.ParsePKey(text)
	if err != nil {
		return nil, &UsageError{Msg: err.Error(), Hint: "want 0x0001 to 0x7ffe"}
	}
	return &k, nil
}

// Moment reads a date, or a date and a time.
func Moment(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &UsageError{Msg: fmt.Sprintf("--%s %q is not a date", flag, Plain(s)), Hint: "for example 2027-03-31, or 2027-03-31T18:00:00Z"}
}
