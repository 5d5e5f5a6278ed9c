package movein

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// entry is a value of the configuration, and where it is from.
type entry struct{ value, from string }

// set records a value of the configuration. The first of several counts.
func (p *Plan) set(key, value, from string) {
	if _, twice := p.entries[key]; !twice {
		p.entries[key] = entry{value, from}
	}
}

// quote returns a string as YAML.
func quote(s string) string { return strconv.Quote(s) }

// yaml returns the configuration.
func (p *Plan) yaml() []byte {
	var b strings.Builder
	b.WriteString("# Made from the files of " + map[Kind]string{OpenSM: "OpenSM", UFM: "UFM"}[p.Kind] + "; report.md says what became of each setting.\n")
	b.WriteString("# portcullisd sm --config reads this file; a service has its own, with this section fabric.\n")
	var open []string
	for _, key := range slices.Sorted(maps.Keys(p.entries)) {
		path := strings.Split(key, ".")
		same := 0
		for same < len(open) && same < len(path)-1 && open[same] == path[same] {
			same++
		}
		for depth := same; depth < len(path)-1; depth++ {
			b.WriteString(strings.Repeat("  ", depth) + path[depth] + ":\n")
		}
		open = path[:len(path)-1]
		e := p.entries[key]
		indent := strings.Repeat("  ", len(open))
		if e.from != "" {
			b.WriteString(indent + "# " + e.from + "\n")
		}
		b.WriteString(indent + path[len(open)] + ": " + e.value + "\n")
	}
	return []byte(b.String())
}
