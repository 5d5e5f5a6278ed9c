package sa

import (
	"portcullis/fabricsm/sa/book"
	"portcullis/fabricsm/sa/trust"
)

// Weakness takes protections away that no configuration does, so that drills can show
// what each is worth. The zero value takes none.
type Weakness struct {
	AnyKey   bool // whatever is shown as SA_Key is taken for it
	SeesPath bool // every requester is answered for paths as if it were trusted
	HearsAll bool // every subscriber gets notices as if it were trusted

	SeesRegistered bool // likewise for groups and services
}

// keyTaken reports that a request with a wrong SA_Key goes on: Weakness.AnyKey.
func (w *Weakness) keyTaken(who *book.Asker, v trust.Verdict) bool {
	if !w.AnyKey || v != trust.WrongKey && v != trust.RetiredKey {
		return false
	}
	who.Trusted = true
	return true
}

// pathAsker is who asks for a path: Weakness.SeesPath.
func (w *Weakness) pathAsker(who *book.Asker) *book.Asker {
	if !w.SeesPath {
		return who
	}
	trusted := *who
	trusted.Trusted = true
	return &trusted
}

// recordAsker is who asks for what is registered: Weakness.SeesRegistered.
func (w *Weakness) recordAsker(who book.Asker) book.Asker {
	who.Trusted = who.Trusted || w.SeesRegistered
	return who
}

// subscriber is who subscribes: Weakness.HearsAll.
func (w *Weakness) subscriber(who *book.Asker) book.Asker {
	sub := *who
	sub.Trusted = sub.Trusted || w.HearsAll
	return sub
}
