// Package lend keeps which M_Keys are lent to tools, and until when.
package lend

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/work"
)

// Longest is the longest time for which a key is lent.
const Longest = 24 * time.Hour

const (
	// maxLeases bounds the keys that are lent at once.
	maxLeases = 256
	// maxBorrower bounds how many bytes of the holder's name are kept.
	maxBorrower = 64
)

// Core is what Leases ask of the core.
type Core interface {
	// Now returns the time of the step.
	Now() time.Time
}

// Actions is what Leases have the core do.
type Actions interface {
	// Report has an event sent.
	Report(fault.Event)
	// After has an alarm come after a time.
	After(time.Duration, work.Alarm, work.Ref)
	// ShowSoon has a view made.
	ShowSoon()
}

// Store makes leases survive a restart.
type Store interface {
	// SaveLease saves the holder of a key and the end of the lease; no holder: it is over.
	SaveLease(guid ib.GUID, until time.Time, to string)
}

// Keys is what Leases know of keys, and have done about them.
type Keys interface {
	// IsLendable reports whether a device has a key that may be lent.
	IsLendable(ib.GUID) bool
	// HasKey reports whether a device has a key.
	HasKey(ib.GUID) bool
	// Replace has a device get another key than the one that was lent, at once if it is there.
	Replace(ib.GUID)
	// LeaseChanged shows in views that the lease of a key has changed.
	LeaseChanged(ib.GUID)
}

// lease is the holder of a device's key, and the end of the lease.
type lease struct {
	until time.Time
	to    string
}

// Leases are the keys that are lent. Use New.
type Leases struct {
	core     Core
	act      Actions
	store    Store
	keys     Keys
	controls controls.Keys
	lent     map[ib.GUID]lease
}

// New returns leases of no key.
func New(c Core, a Actions, s Store, k Keys, o controls.Keys) Leases {
	return Leases{core: c, act: a, store: s, keys: k, controls: o}
}

// Load takes a saved lease.
func (l *Leases) Load(guid ib.GUID, until time.Time, to string) {
	if to == "" {
		delete(l.lent, guid)
		return
	}
	l.put(guid, lease{until, to})
}

func (l *Leases) put(guid ib.GUID, to lease) {
	if l.lent == nil {
		l.lent = make(map[ib.GUID]lease)
	}
	l.lent[guid] = to
}

// Start has leases end that were given before a restart.
func (l *Leases) Start() {
	if !l.controls.EndsLeases() {
		return
	}
	for _, guid := range l.byEnd() {
		l.act.After(max(0, l.lent[guid].until.Sub(l.core.Now())), work.Lease, work.Ref{})
	}
}

// Until returns the end of the lease of a device's key, zero if it is not lent.
func (l *Leases) Until(guid ib.GUID) time.Time { return l.lent[guid].until }

// byEnd lists the devices whose key is lent, those whose time ends first before
// the others.
func (l *Leases) byEnd() []ib.GUID {
	out := make([]ib.GUID, 0, len(l.lent))
	for guid := range l.lent {
		out = append(out, guid)
	}
	slices.SortFunc(out, func(a, b ib.GUID) int {
		return cmp.Or(l.lent[a].until.Compare(l.lent[b].until), cmp.Compare(a, b))
	})
	return out
}

// Lend begins, changes or ends a lease.
func (l *Leases) Lend(guid ib.GUID, end time.Time, to string) {
	_, lent := l.lent[guid]
	if !l.keys.IsLendable(guid) {
		return
	}
	now := l.core.Now()
	if !end.After(now) {
		if lent {
			l.end(guid)
		}
		return
	}
	if !lent && len(l.lent) == maxLeases {
		l.act.Report(&keyevent.KeyProblem{GUID: guid, Reason: fmt.Sprintf("its key is not lent: %d others are; end a lease first", maxLeases)})
		return
	}
	until := end.Round(0).UTC()
	if most := now.Add(Longest).Round(0).UTC(); until.After(most) {
		until = most
	}
	in := lease{until, cmp.Or(to[:min(len(to), maxBorrower)], "somebody")}
	l.put(guid, in)
	l.store.SaveLease(guid, in.until, in.to)
	l.act.Report(&keyevent.KeyLent{GUID: guid, Until: in.until, To: in.to})
	l.keys.LeaseChanged(guid)
	l.act.ShowSoon()
	if l.controls.EndsLeases() {
		l.act.After(in.until.Sub(now), work.Lease, work.Ref{})
	}
}

// Due ends the leases whose time is over.
func (l *Leases) Due() {
	for _, guid := range l.byEnd() {
		if l.lent[guid].until.After(l.core.Now()) {
			return
		}
		l.end(guid)
	}
}

// end ends a lease, and has the key replaced.
func (l *Leases) end(guid ib.GUID) {
	was := l.lent[guid]
	l.Forget(guid)
	l.act.Report(&keyevent.KeyLeaseEnded{GUID: guid, To: was.to, Late: max(0, l.core.Now().Sub(was.until)).Truncate(time.Second)})
	l.act.ShowSoon()
	if l.keys.HasKey(guid) { // it was not removed, and is not retired
		l.keys.Replace(guid)
	}
}

// Forget takes a lease out of what is known and saved.
func (l *Leases) Forget(guid ib.GUID) {
	if _, lent := l.lent[guid]; lent {
		delete(l.lent, guid)
		l.store.SaveLease(guid, time.Time{}, "")
		l.keys.LeaseChanged(guid)
	}
}
