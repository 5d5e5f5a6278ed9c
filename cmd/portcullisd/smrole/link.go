package smrole

import (
	"sync/atomic"

	"portcullis/api/fabric"
	"portcullis/fabricsm/ib"
)

// Link holds what connects the Subnet Manager of the newest attachment with the store. The zero Link has none. Its methods may
// be called from any goroutine.
type Link struct{ now atomic.Pointer[fabric.Link] }

// Load returns the link that is in use, nil without one.
func (l *Link) Load() *fabric.Link { return l.now.Load() }

// Hosts returns inventory's names of nodes by GUID. The map must not be written to.
func (l *Link) Hosts() map[ib.GUID]string { return of(l, (*fabric.Link).Hosts) }

// Cables returns inventory's names of hosts by the switch port they are cabled to. The map must not be written to.
func (l *Link) Cables() map[ib.Place]string { return of(l, (*fabric.Link).Cables) }

// Tenants returns the tenants of hosts by that name. The map must not be written to.
func (l *Link) Tenants() map[string]string { return of(l, (*fabric.Link).Tenants) }

// of asks the link that is in use, if there is one.
func of[T any](l *Link, ask func(*fabric.Link) T) (none T) {
	if now := l.Load(); now != nil {
		return ask(now)
	}
	return none
}
