package image

import (
	"errors"
	"fmt"
)

// ErrUnknown says that a file is no firmware image of a layout known here.
var ErrUnknown = errors.New("not a firmware image of a known layout")

// LayoutError is an image that contradicts itself or its size.
type LayoutError struct {
	Object string // what is wrong, such as "table entry 3 (MAIN_CODE)"
	Cause  string
}

func (e *LayoutError) Error() string { return e.Object + ": " + e.Cause }

func malformed(object, cause string, args ...any) error {
	return &LayoutError{Object: object, Cause: fmt.Sprintf(cause, args...)}
}

// Finding is a checksum or field that is not as it must be.
type Finding struct {
	Object string `json:"object"`
	Text   string `json:"text"`
}

func (f Finding) String() string { return f.Object + ": " + f.Text }
