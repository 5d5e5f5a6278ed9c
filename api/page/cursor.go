package page

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrCursor: the text is no cursor that a page of this list ended with.
var ErrCursor = errors.New("bad cursor")

// maxCursor bounds a cursor. The longest names are host ids of 128 characters.
const maxCursor = 512

// Cursor returns the text that leads to what comes after an item of a list.
func Cursor(list, item string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\x00" + item))
}

// Parse returns the item that a cursor of the list names, "" for the empty cursor of the first page. It
// takes only what Cursor returns. The error is ErrCursor.
func Parse(list, cursor string) (item string, err error) {
	if cursor == "" {
		return "", nil
	}
	if len(cursor) > maxCursor {
		return "", fmt.Errorf("%w: the value of after has %d characters, and a page ends with %d at most", ErrCursor, len(cursor), maxCursor)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	of, item, whole := strings.Cut(string(b), "\x00")
	switch {
	case err != nil || !whole || item == "" || Cursor(of, item) != cursor:
		return "", fmt.Errorf("%w: the value of after is not one that a page has as next", ErrCursor)
	case of != list:
		return "", fmt.Errorf("%w: the value of after belongs to another list than %s", ErrCursor, list)
	default:
		return item, nil
	}
}
