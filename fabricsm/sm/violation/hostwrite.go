package violation

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// HostField is a part of an adapter that its host can write.
type HostField uint32

// Fields that are compared with what was left there.
const (
	HostLID HostField = iota + 1
	HostLMC
	HostMasterLID
	HostMKey
	HostPKeys
	HostAlias
)

var hostFieldNames = [...]string{"", "LID", "LMC", "MasterSMLID", "M_Key", "P_Key table", "alias GUID"}

// HostWrite is a value that was read in an adapter and not left there.
type HostWrite struct {
	Field  HostField
	LID    ib.LID  // that was read there
	PKey   ib.PKey // of HostPKeys: one that was put in or taken out
	Victim ib.GUID // port whose LID or GUID it is now, 0 if none
}

// NoteHostWrite counts that a field of an adapter holds what this subnet manager did not leave there. It was read there, so
// it is proven.
func (l *Log) NoteHostWrite(p topo.PortID, h HostWrite) {
	what := report{kind: HostWrote, number: uint32(h.Field), pkey: h.PKey, victim: h.Victim}
	l.accuse(&what, p, ByPort)
	if what.victim == what.guid {
		what.victim = 0
	}
	l.totals[HostWrote].Confirmed++
	i := l.note(what, h.LID, 0)
	if w := l.Row(i); w.More.verdict != Confirmed {
		w.More.verdict = Confirmed
		l.Prove(i)
	}
}
