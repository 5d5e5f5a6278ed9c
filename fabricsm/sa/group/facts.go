package group

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sm"
)

// The registry saves one fact for each group, named by its MGID, and one for each member, named by the MGID and the GUID of
// the member. Names and bodies are hexadecimal digits. Bodies begin with the version of their format.
const (
	factVersion = 1
	groupSize   = 20
	memberSize  = 19
)

func groupName(mgid ib.GID) string { return hex.EncodeToString(mgid[:]) }

func memberName(mgid ib.GID, guid ib.GUID) string {
	return fmt.Sprintf("%x.%016x", mgid[:], uint64(guid))
}

func factOfGroup(g *Group) sm.Fact {
	v := make([]byte, groupSize)
	v[0] = factVersion
	if g.Fixed {
		v[1] = 1
	}
	binary.BigEndian.PutUint16(v[2:], uint16(g.MLID))
	binary.BigEndian.PutUint16(v[4:], uint16(g.PKey))
	binary.BigEndian.PutUint32(v[6:], g.QKey)
	v[10], v[11], v[12], v[13], v[14], v[15] = uint8(g.MTU), uint8(g.Rate), uint8(g.PacketLifeTime), uint8(g.SL), g.TClass, g.HopLimit
	binary.BigEndian.PutUint32(v[16:], g.FlowLabel)
	return sm.Fact{Kind: sm.FactSAGroup, Name: groupName(g.MGID), Body: hex.EncodeToString(v)}
}

// factOfMember returns the fact of a member, or without a State the fact that deletes it.
func factOfMember(g *Group, m Member) sm.Fact {
	f := sm.Fact{Kind: sm.FactSAMember, Name: memberName(g.MGID, m.GUID)}
	if m.State != 0 {
		v := make([]byte, memberSize)
		v[0], v[1] = factVersion, uint8(m.State)
		if m.Proxy {
			v[2] = 1
		}
		binary.BigEndian.PutUint64(v[3:], uint64(m.Port))
		binary.BigEndian.PutUint64(v[11:], uint64(m.By))
		f.Body = hex.EncodeToString(v)
	}
	return f
}

// Restore fills an empty registry with saved facts, in any order. It ignores facts of other kinds and deletions. A fact
// that cannot be restored is reported and deleted.
func (r *Registry) Restore(facts []sm.Fact) (e Effects) {
	defer r.begin(&e)()
	for _, kind := range []sm.FactKind{sm.FactSAGroup, sm.FactSAMember} {
		of := registry.Saved(facts, kind)
		for i := range of {
			if !r.restore(&of[i]) {
				r.save(sm.Fact{Kind: kind, Name: of[i].Name})
				r.tell(Event{Kind: Problem, Reason: UnusableFact})
			}
		}
	}
	var dead []*Group
	for _, g := range r.groups.All {
		if g.full == 0 && !g.Fixed {
			dead = append(dead, g)
		}
	}
	for _, g := range dead {
		r.drop(g, portindex.Asker{}, NoReason)
	}
	return e
}

func (r *Registry) restore(f *sm.Fact) bool {
	v, err := hex.DecodeString(f.Body)
	switch {
	case err != nil || len(v) == 0 || v[0] != factVersion:
		return false
	case f.Kind == sm.FactSAGroup:
		return r.restoreGroup(f.Name, v)
	default:
		return r.restoreMember(f.Name, v)
	}
}

func (r *Registry) restoreGroup(name string, v []byte) bool {
	mgid, ok := parseGID(name)
	if !ok || len(v) != groupSize || !mgid.IsMulticast() || r.Group(mgid) != nil {
		return false
	}
	g := &Group{
		MGID: mgid, Fixed: v[1] != 0, MLID: ib.LID(binary.BigEndian.Uint16(v[2:])),
		Params: Params{
			PKey: ib.PKey(binary.BigEndian.Uint16(v[4:])), QKey: binary.BigEndian.Uint32(v[6:]),
			MTU: ib.MTU(v[10]), Rate: ib.Rate(v[11]), PacketLifeTime: ib.ExpTime(v[12] & 0x3F), SL: ib.SL(v[13] & 0xF), TClass: v[14], HopLimit: v[15],
			FlowLabel: binary.BigEndian.Uint32(v[16:]) & 0xFFFFF,
		},
		members: registry.NewMap[ib.GUID, Member](compareGUIDs),
	}
	if !g.PKey.Valid() || g.MTU.Bytes() == 0 || g.Rate.Mbps() == 0 || !r.mlids.fits(g) {
		return false
	}
	r.mlids.take(g)
	if !g.Fixed {
		r.made[g.PKey.Base()]++
	}
	r.put(g)
	return true
}

func (r *Registry) restoreMember(name string, v []byte) bool {
	gid, guid, _ := strings.Cut(name, ".")
	mgid, ok := parseGID(gid)
	raw, err := hex.DecodeString(guid)
	if !ok || err != nil || len(raw) != 8 || len(v) != memberSize {
		return false
	}
	m := Member{
		GUID: ib.GUID(binary.BigEndian.Uint64(raw)), State: ib.JoinState(v[1] & 0xF), Proxy: v[2] != 0,
		Port: ib.GUID(binary.BigEndian.Uint64(v[3:])), By: ib.GUID(binary.BigEndian.Uint64(v[11:])),
	}
	g := r.Group(mgid)
	if port, has := r.unseen[m.GUID]; g == nil || m.State == 0 || !m.GUID.Valid() || !m.Port.Valid() || has && port != m.Port {
		return false
	}
	r.remember(mgid, m)
	r.unseen[m.GUID] = m.Port
	r.put(g.with(m))
	return true
}

func parseGID(s string) (g ib.GID, ok bool) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(g) || hex.EncodeToString(raw) != s {
		return g, false
	}
	return ib.GID(raw), true
}
