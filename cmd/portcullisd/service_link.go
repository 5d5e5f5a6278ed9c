package main

import (
	"sync/atomic"

	"portcullis/api/fabric"
)

// of asks the link that is in use, if there is one.
func of[T any](link *atomic.Pointer[fabric.Link], ask func(*fabric.Link) T) (none T) {
	if l := link.Load(); l != nil {
		return ask(l)
	}
	return none
}
