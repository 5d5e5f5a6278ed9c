package refusal

import (
	"fmt"
	"strings"
)

// Clip shortens what a caller said before it is repeated.
func Clip(s string) string { return ClipTo(s, 64) }

// ClipTo shortens it to limit bytes.
func ClipTo(s string, limit int) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}

// Some lists a few names and says how many more there are.
func Some(names []string) string {
	const limit = 5
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
