package chain

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Fields returns the parts of the anchor with their names, as a log has them. None has a blank in it.
func (a *Anchor) Fields() [][2]string {
	out := [][2]string{
		{"seq", strconv.FormatUint(a.Seq, 10)},
		{"hash", a.Hash},
		{"branch", strconv.FormatUint(a.Branch, 10)},
		{"origin", a.Origin},
		{"service", a.Service},
		{"at", a.Time.Format(time.RFC3339Nano)},
	}
	if a.JWS != "" {
		out = append(out, [2]string{"jws", a.JWS})
	}
	return out
}

// parseFields reads what Fields returned, each as NAME=VALUE with a blank behind it, the value in quotes or not. Fields
// that it does not know are passed over. It reports whether each that it knows is one, and each at most once.
func parseFields(line []byte) (a Anchor, ok bool) {
	seen := map[string]bool{}
	for field := range strings.FieldsSeq(string(line)) {
		name, value, found := strings.Cut(field, "=")
		if !found || seen[name] {
			return a, false
		}
		seen[name] = true
		if strings.HasPrefix(value, `"`) {
			text, err := strconv.Unquote(value)
			if err != nil {
				return a, false
			}
			value = text
		}
		if err := a.setField(name, value); err != nil {
			return a, false
		}
	}
	return a, seen["seq"] && seen["hash"] && seen["at"]
}

func (a *Anchor) setField(name, value string) (err error) {
	switch name {
	case "seq":
		a.Seq, err = strconv.ParseUint(value, 10, 64)
	case "branch":
		a.Branch, err = strconv.ParseUint(value, 10, 64)
	case "hash":
		a.Hash = value
	case "origin":
		a.Origin = value
	case "service":
		a.Service = value
	case "at":
		a.Time, err = time.Parse(time.RFC3339Nano, value)
		if !strings.HasSuffix(value, "Z") {
			err = errors.New("want a time in UTC")
		}
	case "jws":
		a.JWS = value
	}
	return err
}
