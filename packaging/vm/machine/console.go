//go:build vm

package machine

import (
	"regexp"
	"strings"
)

// trouble matches the first line of each report by which Linux says that it found a defect in itself or in a module.
var trouble = regexp.MustCompile(`WARNING:|BUG:|Call Trace|Oops|KASAN|UBSAN|general protection|` +
	`possible (circular|recursive) locking|inconsistent lock state|suspicious RCU|rcu: INFO|hung_task|blocked for more than|` +
	`soft lockup|hard LOCKUP|Kernel panic|refcount_t|list_(add|del) corruption|sleeping function called|scheduling while atomic|` +
	`leaked|detected stall`)

// escapes are what firmware and boot loaders draw their screens with.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?=]*[a-zA-Z]`)

// Clean returns what a console showed, as text without terminal sequences.
func Clean(console []byte) string {
	text := escapes.ReplaceAllString(string(console), "")
	return strings.ReplaceAll(text, "\r", "")
}

// Warnings returns the lines of a console that report a defect of the kernel or of a module.
func Warnings(console string) []string {
	var found []string
	for line := range strings.Lines(console) {
		if trouble.MatchString(line) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
