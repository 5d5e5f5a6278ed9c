package inform

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sm"
)

// The registry saves one fact for each subscription, named by the GUID of the subscriber and a number. The body is, in
// hexadecimal digits, the version of the format, flags, the port GUID, the address, the InformInfo, and the epoch of the
// SA_Key that the request showed.
const (
	factVersion = 1
	factInfo    = 44 // where the InformInfo begins
	factEpoch   = factInfo + 36
	factSize    = factEpoch + 4

	flagTrusted = 1
	flagGRH     = 2
)

func factName(as ib.GUID, enum uint16) string { return fmt.Sprintf("%016x.%04x", uint64(as), enum) }

func factOf(s *Subscription) sm.Fact {
	var b [factSize]byte
	a := &s.Address
	b[0] = factVersion
	if s.Trusted {
		b[1] |= flagTrusted
	}
	if a.GRH {
		b[1] |= flagGRH
	}
	binary.BigEndian.PutUint64(b[2:], uint64(s.Port))
	binary.BigEndian.PutUint16(b[10:], uint16(a.LID))
	binary.BigEndian.PutUint16(b[12:], a.PKeyIndex)
	binary.BigEndian.PutUint32(b[14:], a.QP)
	b[18], b[19], b[20], b[21], b[22] = uint8(a.SL), a.PathBits, a.GIDIndex, a.HopLimit, a.TrafficClass
	binary.BigEndian.PutUint32(b[23:], a.FlowLabel)
	copy(b[27:], a.GID[:])
	if mad.Encode(b[factInfo:], &s.Info) != nil {
		return sm.Fact{} // not reached: it came from the wire
	}
	binary.BigEndian.PutUint32(b[factEpoch:], uint32(s.Epoch))
	return sm.Fact{Kind: sm.FactSASubscription, Name: factName(s.As, s.Enum), Body: hex.EncodeToString(b[:])}
}

// Restore fills an empty registry with saved facts, in any order. It ignores facts of other kinds. A fact that cannot be
// restored is reported and deleted.
func (r *Registry) Restore(facts []sm.Fact) (e Effects) {
	r.eff = &e
	mine := registry.Saved(facts, sm.FactSASubscription)
	for i := range mine {
		s := subscriptionOf(&mine[i])
		if s == nil || r.subs[identityOf(s.As, s.Info.QPN, &s.Info)] != nil {
			e.Save = append(e.Save, sm.Fact{Kind: sm.FactSASubscription, Name: mine[i].Name})
			e.Events = append(e.Events, Event{Kind: Problem, Reason: UnusableFact})
			continue
		}
		r.add(s)
	}
	return e
}

// subscriptionOf reads a fact. It returns nil if the fact is invalid.
func subscriptionOf(f *sm.Fact) *Subscription {
	b, err := hex.DecodeString(f.Body)
	if err != nil || len(b) != factSize || b[0] != factVersion {
		return nil
	}
	s := &Subscription{Port: ib.GUID(binary.BigEndian.Uint64(b[2:])), Trusted: b[1]&flagTrusted != 0}
	s.Address = Address{
		LID: ib.LID(binary.BigEndian.Uint16(b[10:])), PKeyIndex: binary.BigEndian.Uint16(b[12:]), QP: binary.BigEndian.Uint32(b[14:]),
		SL: ib.SL(b[18]), PathBits: b[19], GRH: b[1]&flagGRH != 0, GIDIndex: b[20], HopLimit: b[21], TrafficClass: b[22],
		FlowLabel: binary.BigEndian.Uint32(b[23:]), GID: ib.GID(b[27:43]),
	}
	s.Epoch = uint64(binary.BigEndian.Uint32(b[factEpoch:]))
	var enum uint16
	var as uint64
	if n, err := fmt.Sscanf(f.Name, "%16x.%4x", &as, &enum); n != 2 || err != nil {
		return nil
	}
	if s.As, s.Enum = ib.GUID(as), enum; factName(s.As, s.Enum) != f.Name {
		return nil
	}
	if mad.Decode(b[factInfo:], &s.Info) != nil || !s.Port.Valid() || !s.As.Valid() || s.Info.IsGeneric > 1 || s.Info.QPN != s.Address.QP {
		return nil
	}
	return s
}
