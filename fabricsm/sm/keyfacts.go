package sm

import (
	"maps"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// Kinds of facts that the store makes itself, and the core never sees.
const (
	// FactVault: the header of the vault that seals the keys.
	FactVault FactKind = "vault"
	// FactMaster: the master of derived keys, sealed.
	FactMaster FactKind = "master"
	// FactCheck: the key under which keys are compared, sealed.
	FactCheck FactKind = "check"
)

const (
	keyPrefix      = "key/"
	rotationPrefix = "rotation/"
)

// KeyFact is the kind of facts with the records of a kind of key. A store has to
// seal Key before it keeps such a fact, and to fail when it cannot keep it: a key
// that is on a device and nowhere else is lost.
func KeyFact(k keys.Kind) FactKind { return FactKind(keyPrefix + k.String()) }

// RotationFact is the kind of the one fact about the rotation of a kind of key.
func RotationFact(k keys.Kind) FactKind { return FactKind(rotationPrefix + k.String()) }

// KeyKind returns the kind of key that a KeyFact is about.
func (k FactKind) KeyKind() (keys.Kind, bool) { return k.keyKind(keyPrefix) }

// RotationKind returns the kind of key that a RotationFact is about.
func (k FactKind) RotationKind() (keys.Kind, bool) { return k.keyKind(rotationPrefix) }

func (k FactKind) keyKind(prefix string) (kind keys.Kind, ok bool) {
	text, ok := strings.CutPrefix(string(k), prefix)
	return kind, ok && kind.UnmarshalText([]byte(text)) == nil
}

// OfFabric reports whether a fact is about the whole fabric, or has a name, so that it needs no GUID.
func (f *Fact) OfFabric() bool {
	if k, ok := f.Kind.KeyKind(); ok {
		return !k.OfDevice() && f.GUID == 0
	}
	if f.Kind.OfSA() {
		return f.Name != ""
	}
	_, rotation := f.Kind.RotationKind()
	return (rotation || f.Kind.ofStore() || f.Kind == FactReleased) && f.GUID == 0
}

// Vital reports whether a store must not go on without a fact.
func (f *Fact) Vital() bool {
	_, key := f.Kind.KeyKind()
	_, rotation := f.Kind.RotationKind()
	return key || rotation || f.Kind.ofStore() || f.Kind == FactReleased || f.Kind == FactLent
}

// ofStore reports whether only the store of facts makes and reads a kind.
func (k FactKind) ofStore() bool { return k == FactVault || k == FactMaster || k == FactCheck }

// KeyFactOf returns the fact that saves a record.
func KeyFactOf(r keys.Record) Fact {
	return Fact{Kind: KeyFact(r.Kind), GUID: r.GUID, Key: &r}
}

// RotationFactOf returns the fact that saves a cycle.
func RotationFactOf(c keys.Cycle) Fact {
	return Fact{Kind: RotationFact(c.Kind), GUID: ib.GUID(0), Cycle: &c}
}

// KeyRecords returns the records of keys that facts hold, the last of each.
func KeyRecords(facts []Fact) []keys.Record {
	type name struct {
		kind keys.Kind
		guid ib.GUID
	}
	last := make(map[name]keys.Record)
	for i := range facts {
		if k := facts[i].Key; k != nil {
			last[name{k.Kind, k.GUID}] = *k
		}
	}
	out := slices.Collect(maps.Values(last))
	keys.SortRecords(out)
	return out
}

// KeysWereReleased reports whether the facts end with keys removed, and not assigned again since.
func KeysWereReleased(facts []Fact) (released bool) {
	for i := range facts {
		if facts[i].Kind == FactReleased {
			released = facts[i].Mark != ""
		}
	}
	return released
}
