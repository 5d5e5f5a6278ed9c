package registry

import (
	"encoding/binary"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
)

// Notice is an event with the ports that may know of it.
type Notice struct {
	Report mad.ReportNotice
	// PKeys are those that the port in question may use, or the one of the group. A port that can communicate with it may
	// know of the notice, except by one of But: such a port knows already.
	PKeys, But []ib.PKey
	Group      bool // a limited member of a group's partition may know, too
}

// Visible reports whether an end port may know of the notice.
func (n *Notice) Visible(e *portindex.EndPort) bool {
	return n.reaches(e, n.PKeys) && !n.reaches(e, n.But)
}

func (n *Notice) reaches(e *portindex.EndPort, by []ib.PKey) bool {
	for _, k := range by {
		if o, ok := e.Holds(k); ok && (n.Group || k.Matches(o)) {
			return true
		}
	}
	return false
}

// Secret reports whether a notice is only for trusted subscribers.
func (n *Notice) Secret() bool {
	number := uint16(n.Report.TrapNumber)
	if !n.Report.IsGeneric {
		number = binary.BigEndian.Uint16(n.Report.DataDetails[len(n.Report.DataDetails)-2:])
	}
	return trust.Secret(n.Report.IsGeneric, number)
}

// AboutGID makes the notice of a GID that came or went (traps 64 to 67), as the class
// manager at an end port raises it.
func AboutGID(trap mad.TrapNum, gid ib.GID, lid ib.LID, issuer ib.GID, pkeys ...ib.PKey) Notice {
	n := Notice{PKeys: slices.Clone(pkeys), Group: gid.IsMulticast()}
	n.Report.NoticeHeader = mad.NoticeHeader{
		IsGeneric: true, Type: mad.NoticeSubnetManagement, ProducerType: mad.ProducerClassManager, TrapNumber: trap, IssuerLID: lid,
	}
	n.Report.IssuerGID = issuer
	copy(n.Report.DataDetails[gidDetail:], gid[:])
	return n
}

// gidDetail is where the GID of traps 64 to 67 lies in the details of a notice.
const gidDetail = 6

// GIDOf returns the GID that a notice of traps 64 to 67 is about.
func (n *Notice) GIDOf() (gid ib.GID) {
	copy(gid[:], n.Report.DataDetails[gidDetail:])
	return gid
}

// Guard decides the rights of a requester. *trust.Guard is one.
type Guard interface {
	// ActsFor judges a request in the name of a GUID. owner is its end port, or nil if no port has it.
	ActsFor(a *portindex.Asker, owner *portindex.EndPort, guid ib.GUID) trust.Verdict
}

// IsOwn reports whether an asker registers for itself when it names a GUID of an end
// port.
func IsOwn(a *portindex.Asker, owner *portindex.EndPort, guid ib.GUID) bool {
	return owner != nil && owner.Port == a.Port && (guid == a.As || a.As == owner.GUID)
}
