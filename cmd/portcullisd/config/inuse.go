package config

import (
	"sync/atomic"

	"portcullis/fabricsm/sm"
)

// InUse holds the configuration that the Subnet Manager begins with when it attaches next. Its methods may be called from any
// goroutine.
type InUse struct{ core atomic.Pointer[sm.Config] }

// NewInUse returns a holder of c.
func NewInUse(c sm.Config) *InUse {
	u := &InUse{}
	u.Set(c)
	return u
}

// Core returns the configuration.
func (u *InUse) Core() sm.Config { return *u.core.Load() }

// Set replaces the configuration.
func (u *InUse) Set(c sm.Config) { u.core.Store(&c) }
