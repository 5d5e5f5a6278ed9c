package service

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sm"
)

// The registry saves one fact for each record, named by its RID. Its body is, in hexadecimal digits, the version of the
// format, a flag, the end of the lease in nanoseconds since 1970, the record, and the home of an open record. A fact with a
// ServiceKey is private.
const (
	factVersion = 1
	factHeader  = 10
	factHome    = factHeader + recordSize
	factSize    = factHome + 2
)

func factName(r RID) string {
	return fmt.Sprintf("%016x.%016x.%04x", uint64(r.ID), uint64(r.GUID), uint16(r.PKey))
}

func factOf(r *Record) sm.Fact {
	var b [factSize]byte
	b[0] = factVersion
	if r.Open {
		b[1] = 1
	}
	if !r.Expires.IsZero() {
		binary.BigEndian.PutUint64(b[2:], uint64(r.Expires.UnixNano()))
	}
	binary.BigEndian.PutUint16(b[factHome:], uint16(r.Home))
	if mad.Encode(b[factHeader:], &r.Record) != nil {
		return sm.Fact{} // not reached: it came from the wire
	}
	f := sm.Fact{Kind: sm.FactSAService, Name: factName(r.RID)}
	if text := hex.EncodeToString(b[:]); r.Record.ServiceKey.IsZero() {
		f.Body = text
	} else {
		f.Private = ib.NewSecretText(text)
	}
	return f
}

// Restore fills an empty registry with saved facts, in any order. It ignores facts of other kinds. A fact that cannot be
// restored is reported and deleted.
func (r *Registry) Restore(facts []sm.Fact) (e Effects) {
	r.out = &e
	mine := registry.Saved(facts, sm.FactSAService)
	for i := range mine {
		rec := recordOf(&mine[i])
		if rec == nil {
			e.Save = append(e.Save, sm.Fact{Kind: sm.FactSAService, Name: mine[i].Name})
			e.Events = append(e.Events, Event{Kind: Problem, Reason: UnusableFact})
			continue
		}
		r.put(rec)
	}
	return e
}

// recordOf reads a fact. It returns nil if the fact is invalid.
func recordOf(f *sm.Fact) *Record {
	text := f.Body
	if !f.Private.IsZero() {
		text = f.Private.Reveal()
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != factSize || b[0] != factVersion {
		return nil
	}
	r := &Record{Open: b[1] == 1, Home: ib.PKey(binary.BigEndian.Uint16(b[factHome:]))}
	if at := int64(binary.BigEndian.Uint64(b[2:])); at != 0 {
		r.Expires = time.Unix(0, at)
	}
	if mad.Decode(b[factHeader:], &r.Record) != nil {
		return nil
	}
	r.RID = RID{r.Record.ServiceID, r.Record.ServiceGID.GUID(), r.Record.ServicePKey}
	if factName(r.RID) != f.Name || !r.GUID.Valid() || !r.PKey.Valid() {
		return nil
	}
	return r
}
