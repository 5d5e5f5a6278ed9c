package disclosure

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Question is a request to subnet administration, without a key.
type Question struct {
	MAD   mad.MAD // its transaction id is 0: the caller sets one
	LID   ib.LID  // of the port that it is to come from
	Claim ib.GID  // source GID of a global route header; zero: there is none
	// Control is true of a question that each port is answered.
	Control bool
}

// tables are the records that are asked for as a whole.
var tables = [...]mad.AttrID{
	mad.AttrNodeRecord, mad.AttrPortInfoRecord, mad.AttrSLtoVLRecord, mad.AttrSwitchInfoRecord, mad.AttrLinearForwardingRecord,
	mad.AttrMulticastForwardingRecord, mad.AttrSMInfoRecord, mad.AttrLinkRecord, mad.AttrGUIDInfoRecord, mad.AttrServiceRecord,
	mad.AttrPKeyTableRecord, mad.AttrVLArbitrationRecord, mad.AttrMCMemberRecord, mad.AttrInformInfoRecord, mad.AttrPathRecord,
}

// MaxQuestions is how many questions one port asks at most.
const MaxQuestions = 48

// Questions returns what a port asks: for each kind of record, for all and for those of a stranger, in each form that a host can use
// without a key. asker is a port or None; then lid is the LID that it claims. stranger is a port that it must not know of, or None.
func (t *Tables) Questions(asker int, lid ib.LID, stranger int) []Question {
	b := builder{lid: lid}
	if asker != None {
		b.lid = t.ports[asker].lid
		b.own = t.gid(asker)
	}
	b.add(mad.MethodGet, mad.AttrClassPortInfo, 0)
	b.list[0].Control = true
	for _, attr := range tables {
		b.add(mad.MethodGetTable, attr, 0)
	}
	if asker != None {
		b.path(mad.MethodGet, mad.PathComponentSGID|mad.PathComponentDGID, mad.PathRecord{SGID: b.own, DGID: b.own})
		b.path(mad.MethodGetTable, mad.PathComponentSGID, mad.PathRecord{SGID: b.own})
	}
	if stranger != None {
		t.about(&b, stranger)
	}
	return b.list
}

// builder collects questions.
type builder struct {
	lid  ib.LID
	own  ib.GID
	list []Question
}

// add adds a question without a record, and returns its data.
func (b *builder) add(method mad.Method, attr mad.AttrID, mask mad.ComponentMask) (data []byte) {
	b.list = append(b.list, Question{LID: b.lid})
	m := &b.list[len(b.list)-1].MAD
	m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, Attr: attr})
	m.SetComponentMask(mask)
	return m.SAData()
}

// with adds a question with a record.
func with[T any](b *builder, method mad.Method, attr mad.AttrID, mask mad.ComponentMask, rec *T) {
	mad.MustEncode(b.add(method, attr, mask), rec)
}

func (b *builder) path(method mad.Method, mask mad.ComponentMask, rec mad.PathRecord) {
	if method == mad.MethodGetTable {
		mask, rec.NumbPath = mask|mad.PathComponentNumbPath, 1
	}
	with(b, method, mad.AttrPathRecord, mask, &rec)
}

func (t *Tables) gid(i int) ib.GID { return ib.MakeGID(t.prefix, t.ports[i].GUID) }

// about adds the questions that name a stranger.
func (t *Tables) about(b *builder, stranger int) {
	s := &t.ports[stranger]
	gid, lid := t.gid(stranger), s.lid
	const gids, lids = mad.PathComponentSGID | mad.PathComponentDGID, mad.PathComponentSLID | mad.PathComponentDLID
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodGetTable} {
		b.path(method, gids, mad.PathRecord{SGID: b.own, DGID: gid})
		b.path(method, lids, mad.PathRecord{SLID: b.lid, DLID: lid})
		b.path(method, gids, mad.PathRecord{SGID: gid, DGID: b.own})
		b.path(method, gids, mad.PathRecord{SGID: gid, DGID: gid})
	}
	b.path(mad.MethodGet, mad.PathComponentDGID, mad.PathRecord{DGID: gid})
	b.path(mad.MethodGet, mad.PathComponentDLID, mad.PathRecord{DLID: lid})
	b.path(mad.MethodGet, mad.PathComponentDLID, mad.PathRecord{DLID: lid})
	b.list[len(b.list)-1].Claim = gid
	b.multi(gid)
	with(b, mad.MethodGetTrace, mad.AttrTraceRecord, gids, &mad.PathRecord{SGID: b.own, DGID: gid})

	node := mad.NodeRecord{LID: lid}
	node.PortGUID = s.GUID
	with(b, mad.MethodGet, mad.AttrNodeRecord, mad.NodeComponentLID, &node)
	with(b, mad.MethodGetTable, mad.AttrNodeRecord, mad.NodeComponentPortGUID, &node)
	with(b, mad.MethodGetTable, mad.AttrPortInfoRecord, mad.PortInfoComponentEndportLID, &mad.PortInfoRecord{EndportLID: lid})
	with(b, mad.MethodGetTable, mad.AttrGUIDInfoRecord, mad.GUIDInfoComponentLID, &mad.GUIDInfoRecord{LID: lid})
	with(b, mad.MethodGetTable, mad.AttrPKeyTableRecord, mad.PKeyTableComponentLID, &mad.PKeyTableRecord{LID: lid})
	with(b, mad.MethodGetTable, mad.AttrLinkRecord, mad.LinkComponentFromLID, &mad.LinkRecord{FromLID: lid})
	with(b, mad.MethodGetTable, mad.AttrInformInfoRecord, mad.InformInfoComponentSubscriberGID, &mad.InformInfoRecord{SubscriberGID: gid})
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodGetTable} {
		with(b, method, mad.AttrServiceRecord, mad.ServiceComponentServiceGID, &mad.ServiceRecord{ServiceGID: gid})
		with(b, method, mad.AttrMCMemberRecord, mad.MCMemberComponentPortGID, &mad.MCMemberRecord{PortGID: gid})
	}
	for _, key := range s.keys.most {
		if key.Base() != ib.DefaultPKeyLimited {
			with(b, mad.MethodGet, mad.AttrMCMemberRecord, mad.MCMemberComponentMGID, &mad.MCMemberRecord{MGID: broadcast(key)})
			with(b, mad.MethodGet, mad.AttrMCMemberRecord, mad.MCMemberComponentPKey, &mad.MCMemberRecord{PKey: key.Full()})
			b.path(mad.MethodGet, mad.PathComponentDGID, mad.PathRecord{DGID: broadcast(key)})
			break
		}
	}
}

// multi adds a question for a MultiPathRecord to a port.
func (b *builder) multi(to ib.GID) {
	const mask = mad.MultiPathComponentSGIDCount | mad.MultiPathComponentDGIDCount | mad.MultiPathComponentNumbPath
	with(b, mad.MethodGetMulti, mad.AttrMultiPathRecord, mask, &mad.MultiPathRecord{SGIDCount: 1, DGIDCount: 1, NumbPath: 1})
	const first = 24 // byte at which the GIDs begin
	d := b.list[len(b.list)-1].MAD.SAData()
	copy(d[first:], b.own[:])
	copy(d[first+len(b.own):], to[:])
}

// broadcast returns the MGID of the IPoIB broadcast group of a partition (RFC 4391, 4).
func broadcast(key ib.PKey) (m ib.GID) {
	m[0], m[1], m[2], m[3] = 0xFF, 0x12, 0x40, 0x1B
	binary.BigEndian.PutUint16(m[4:], uint16(key.Full()))
	binary.BigEndian.PutUint32(m[12:], 0xFFFFFFFF)
	return m
}
