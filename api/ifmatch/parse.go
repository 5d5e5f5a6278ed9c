package ifmatch

import "strings"

// Parse reads If-Match (RFC 9110, section 13.1.1): "*", which any object matches, or entity tags. Weak ones are
// left out, because they match nothing there.
func Parse(header string) (versions []string, any, ok bool) {
	if strings.TrimSpace(header) == "*" {
		return nil, true, true
	}
	versions = []string{}
	for rest := header; ; {
		rest = strings.TrimLeft(rest, " \t")
		tag, weak := strings.CutPrefix(rest, "W/")
		value, opens := strings.CutPrefix(tag, `"`)
		version, after, closes := strings.Cut(value, `"`)
		if !opens || !closes {
			return nil, false, false
		}
		if !weak {
			versions = append(versions, version)
		}
		after = strings.TrimLeft(after, " \t")
		if after == "" {
			return versions, false, true
		}
		if rest, ok = strings.CutPrefix(after, ","); !ok {
			return nil, false, false
		}
	}
}
