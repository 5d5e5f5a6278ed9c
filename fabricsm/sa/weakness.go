package sa

import (
	"portcullis/fabricsm/sa/book"
	"portcullis/fabricsm/sa/trust"
)

// Weakness disables protections that no configuration disables, so that drills can show their effect. The zero value
// disables none.
type Weakness struct {
	AnyKey   bool // any value is accepted as SA_Key
	SeesPath bool // every requester is answered for paths as if it were trusted
	HearsAll bool // every subscriber gets notices as if it were trusted

	SeesRegistered bool // likewise for groups and services
}

// keyTaken reports whether a request with a wrong SA_Key is accepted: Weakness.AnyKey.
func (w *Weakness) keyTaken(who *book.Asker, v trust.Verdict) bool {
	if !w.AnyKey || v != trust.WrongKey && v != trust.RetiredKey {
		return false
	}
	who.Trusted = true
	return true
}

// pathAsker returns the requester of a path: Weakness.SeesPath.
func (w *Weakness) pathAsker(who *book.Asker) *book.Asker {
	if !w.SeesPath {
		return who
	}
	trusted := *who
	trusted.Trusted = true
	return &trusted
}

// recordAsker returns the requester of registrations: Weakness.SeesRegistered.
func (w *Weakness) recordAsker(who book.Asker) book.Asker {
	who.Trusted = who.Trusted || w.SeesRegistered
	return who
}

// subscriber returns the subscriber: Weakness.HearsAll.
func (w *Weakness) subscriber(who *book.Asker) book.Asker {
	sub := *who
	sub.Trusted = sub.Trusted || w.HearsAll
	return sub
}
