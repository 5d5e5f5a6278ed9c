package registry

import (
	"fmt"

	"portcullis/fabricsm/sa/portindex"
)

// Word returns the word of a value of an enumerated type, or the value and the type's name.
func Word[T ~uint8](words []string, name string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return fmt.Sprintf("%s(%d)", name, uint8(v))
}

// Cause ends the words of an event: the requester, if there is one, and the reason, if it is not zero.
func Cause[R interface {
	~uint8
	fmt.Stringer
}](who *portindex.Asker, reason R,
) string {
	var s string
	if who.LID != 0 {
		s = fmt.Sprintf(", asked by LID %v", who.LID)
	}
	if reason != 0 {
		s += ": " + reason.String()
	}
	return s
}
