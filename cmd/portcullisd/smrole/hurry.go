package smrole

import (
	"sync"
	"time"
)

// hurryFor is how long an instance that begins to lead hurries at most.
const hurryFor = 30 * time.Second

// hurry says whether an instance has begun to lead and not settled the fabric yet. Its methods may be called from any
// goroutine.
type hurry struct {
	tell func(bool) // nil: nothing depends on it

	mu    sync.Mutex
	limit *time.Timer // nil: it does not hurry
}

// begin begins it. It ends by itself after some time.
func (h *hurry) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tell == nil || h.limit != nil {
		return
	}
	h.limit = time.AfterFunc(hurryFor, h.end)
	h.tell(true)
}

// end ends it, if it began.
func (h *hurry) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limit != nil {
		h.limit.Stop()
		h.limit = nil
		h.tell(false)
	}
}
