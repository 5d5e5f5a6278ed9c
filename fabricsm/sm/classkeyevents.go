package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/violationlog"
)

// ClassKeyProblem says why a device does not have the key of a class that it
// should have.
type ClassKeyProblem struct {
	Kind   keys.Kind
	GUID   ib.GUID  // port GUID, of a switch that of port 0; 0: of no device in particular
	Place  ib.Place // zero for a switch
	Reason string
}

// ClassKeyViolation says that a device received MADs of a class with a wrong key. The device itself counted them. The
// sender of the last one is known from its trap, if one came.
type ClassKeyViolation struct {
	Kind   keys.Kind
	GUID   ib.GUID  // of the device that refused them, and its place
	Place  ib.Place // zero for a switch
	Count  uint16   // since the last such event; 65535: at least so many
	Node   uint16   // of these, N2N MADs of switches with a wrong node key
	Lapsed bool     // its protection had lapsed, and was restored
	Times  uint64   // so many such events there were of this device and class, this one included

	Told   bool   // a trap came; the following fields are from it
	SLID   ib.LID // of the last offender
	SGID   ib.GID // zero: the trap has none
	QP     uint32
	Method mad.Method
	Attr   mad.AttrID
	Mod    uint32
}

// Quiet reports whether the event is left out of the log. For a device and class whose event is frequent, only numbers 1,
// 2, 5, 10, 20, 50 and so on are logged.
func (e *ClassKeyViolation) Quiet() bool { return !violationlog.Tells(e.Times) }

// ClassKeyFalseTrap says that a trap reported a wrong key, but the device that it came from counted none or does not send
// such traps. Nothing was changed.
type ClassKeyFalseTrap struct {
	Kind   keys.Kind
	LID    ib.LID // it came from
	GUID   ib.GUID
	Place  ib.Place
	Reason string
	Count  uint64 // from that device so far; events are given for 1, 2, 5, 10, 20, 50 and so on
}

// ClassKeysReleased says that the keys of the classes were given back, as far as
// devices could be asked.
type ClassKeysReleased struct {
	Released int // keys
	Kept     int // keys that devices still hold, and that stay in the store
}

func (*ClassKeyProblem) FabricEvent()   {}
func (*ClassKeyViolation) FabricEvent() {}
func (*ClassKeyFalseTrap) FabricEvent() {}
func (*ClassKeysReleased) FabricEvent() {}

func (e *ClassKeyProblem) String() string {
	return fmt.Sprintf("port %v%s is not protected by a %v of ours: %s", e.GUID, atPlace(e.Place), e.Kind, e.Reason)
}

func (e *ClassKeyViolation) String() string {
	s := fmt.Sprintf("port %v%s refused %d requests with a wrong %v", e.GUID, atPlace(e.Place), e.Count, e.Kind)
	if e.Told {
		s += fmt.Sprintf("; the last was %v of attribute 0x%04x from LID %v, queue pair %d", e.Method, uint16(e.Attr), e.SLID, e.QP)
	}
	if e.Lapsed {
		s += "; its protection had lapsed and was restored"
	}
	return s
}

func (e *ClassKeyFalseTrap) String() string {
	return fmt.Sprintf("a trap from LID %v, port %v%s, tells of a wrong %v and is not believed: %s; %d so far", e.LID, e.GUID, atPlace(e.Place), e.Kind, e.Reason, e.Count)
}

func (e *ClassKeysReleased) String() string {
	if e.Kept == 0 {
		return fmt.Sprintf("%d keys of management classes were given back", e.Released)
	}
	return fmt.Sprintf("%d keys of management classes were given back; %d could not be, and stay in the store", e.Released, e.Kept)
}

func atPlace(p ib.Place) string {
	if p.IsZero() {
		return ""
	}
	return fmt.Sprintf(" at %v", p)
}
