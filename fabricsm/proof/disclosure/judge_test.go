package disclosure

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Each kind of record, with names that h1 may know and names that it must not know.
func TestJudge(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	gid := func(host string) ib.GID { return ib.MakeGID(ib.DefaultPrefix, b.stage.GUID(host, 1)) }
	node := func(host string) ib.GUID { return b.stage.List.Find(host).GUID }
	leaf := b.stage.SwitchPort("h2", 1)
	leafLID := b.stage.Fabric.PortInfo(leaf.Node, 0).LID
	lft := func(lid ib.LID, num ib.PortNum) (r mad.LinearForwardingTableRecord) {
		r.LID = leafLID
		r.BlockNum = uint16(lid / mad.LIDsPerBlock)
		for i := range r.Port {
			r.Port[i] = ib.NoPort
		}
		r.Port[lid%mad.LIDsPerBlock] = num
		return r
	}
	keyTable := func(host string, keys ...ib.PKey) (r mad.PKeyTableRecord) {
		r.LID = b.lidOf(host)
		copy(r.PKey[:], keys)
		return r
	}
	for name, c := range map[string]struct {
		answer []mad.MAD
		want   string
	}{
		"own path":           {answer(mad.AttrPathRecord, mad.PathRecord{SGID: gid("h1"), DGID: gid("h3"), SLID: b.lidOf("h1"), DLID: b.lidOf("h3"), PKey: redKey}), ""},
		"to the manager":     {answer(mad.AttrPathRecord, mad.PathRecord{SGID: gid("h1"), DGID: gid("sm"), DLID: b.lidOf("sm")}), ""},
		"to the server":      {answer(mad.AttrPathRecord, mad.PathRecord{SGID: gid("h1"), DGID: gid("h4"), DLID: b.lidOf("h4")}), ""},
		"path by GID":        {answer(mad.AttrPathRecord, mad.PathRecord{SGID: gid("h1"), DGID: gid("h2")}), "DGID of h2"},
		"path by LID":        {answer(mad.AttrPathRecord, mad.PathRecord{SLID: b.lidOf("h1"), DLID: b.lidOf("h2")}), "DLID of h2"},
		"path from others":   {answer(mad.AttrPathRecord, mad.PathRecord{SGID: gid("h5"), SLID: b.lidOf("h6")}), "SGID of h5, SLID of h6"},
		"path to a group":    {answer(mad.AttrPathRecord, mad.PathRecord{DGID: broadcast(blueKey), DLID: 0xC001, PKey: blueKey}), "P_Key 0x8202"},
		"own group's path":   {answer(mad.AttrPathRecord, mad.PathRecord{DGID: broadcast(redKey), DLID: 0xC001, PKey: redKey}), ""},
		"unknown GID":        {answer(mad.AttrPathRecord, mad.PathRecord{DGID: ib.MakeGID(ib.DefaultPrefix, 0x1234)}), "undecided 1"},
		"unknown LID":        {answer(mad.AttrNodeRecord, mad.NodeRecord{LID: 0x7777}), "undecided 1"},
		"node by port":       {answer(mad.AttrNodeRecord, mad.NodeRecord{NodeInfo: mad.NodeInfo{PortGUID: b.stage.GUID("h2", 1)}}), "PortGUID of h2"},
		"node by node":       {answer(mad.AttrNodeRecord, mad.NodeRecord{NodeInfo: mad.NodeInfo{NodeGUID: node("h2")}}), "NodeGUID of h2"},
		"node by LID":        {answer(mad.AttrNodeRecord, mad.NodeRecord{LID: b.lidOf("h2")}), "LID of h2"},
		"switch":             {answer(mad.AttrNodeRecord, mad.NodeRecord{LID: leafLID, NodeInfo: mad.NodeInfo{NodeGUID: node(leaf.Node)}}), ""},
		"port":               {answer(mad.AttrPortInfoRecord, mad.PortInfoRecord{EndportLID: b.lidOf("h2")}), "EndportLID of h2"},
		"port's own field":   {answer(mad.AttrPortInfoRecord, mad.PortInfoRecord{PortInfo: mad.PortInfo{LID: b.lidOf("h2")}}), "PortInfo.LID of h2"},
		"switch port":        {answer(mad.AttrPortInfoRecord, mad.PortInfoRecord{EndportLID: leafLID, PortNum: leaf.Port}), "EndportLID of h2"},
		"own with M_Key":     {answer(mad.AttrPortInfoRecord, mad.PortInfoRecord{EndportLID: b.lidOf("h1"), PortInfo: mad.PortInfo{MKey: ib.NewMKey(7)}}), "key M_Key"},
		"manager":            {answer(mad.AttrSMInfoRecord, mad.SMInfoRecord{LID: b.lidOf("sm"), SMInfo: mad.SMInfo{GUID: b.stage.GUID("sm", 1)}}), ""},
		"manager's key":      {answer(mad.AttrSMInfoRecord, mad.SMInfoRecord{LID: b.lidOf("sm"), SMInfo: mad.SMInfo{SMKey: ib.NewSMKey(7)}}), "key SM_Key"},
		"another manager":    {answer(mad.AttrSMInfoRecord, mad.SMInfoRecord{LID: b.lidOf("h2"), SMInfo: mad.SMInfo{GUID: b.stage.GUID("h5", 1)}}), "LID of h2, GUID of h5"},
		"link":               {answer(mad.AttrLinkRecord, mad.LinkRecord{FromLID: leafLID, FromPort: leaf.Port, ToLID: 0xFFFF}), "FromLID of h2"},
		"link back":          {answer(mad.AttrLinkRecord, mad.LinkRecord{ToLID: b.lidOf("h2")}), "ToLID of h2"},
		"own GUIDs":          {answer(mad.AttrGUIDInfoRecord, mad.GUIDInfoRecord{LID: b.lidOf("h1"), GUIDInfo: mad.GUIDInfo{GUID: [8]ib.GUID{b.stage.GUID("h1", 1)}}}), ""},
		"GUIDs":              {answer(mad.AttrGUIDInfoRecord, mad.GUIDInfoRecord{LID: b.lidOf("h1"), GUIDInfo: mad.GUIDInfo{GUID: [8]ib.GUID{0, b.stage.GUID("h2", 1)}}}), "GUID of h2"},
		"GUIDs by LID":       {answer(mad.AttrGUIDInfoRecord, mad.GUIDInfoRecord{LID: b.lidOf("h5")}), "LID of h5"},
		"own P_Keys":         {answer(mad.AttrPKeyTableRecord, keyTable("h1", 0x7FFF, redKey, 0x8999)), ""},
		"P_Keys":             {answer(mad.AttrPKeyTableRecord, keyTable("h3", 0x7FFF, redKey)), ""},
		"P_Keys of others":   {answer(mad.AttrPKeyTableRecord, keyTable("h4", 0x7FFF, sharedKey, blueKey)), "P_Key 0x8202"},
		"P_Keys by LID":      {answer(mad.AttrPKeyTableRecord, keyTable("h2")), "LID of h2"},
		"own group":          {answer(mad.AttrMCMemberRecord, mad.MCMemberRecord{MGID: broadcast(redKey), PKey: redKey, PortGID: gid("h3")}), ""},
		"default group":      {answer(mad.AttrMCMemberRecord, mad.MCMemberRecord{PKey: 0xFFFF}), ""},
		"group":              {answer(mad.AttrMCMemberRecord, mad.MCMemberRecord{MGID: broadcast(blueKey), PKey: blueKey}), "P_Key 0x8202"},
		"member":             {answer(mad.AttrMCMemberRecord, mad.MCMemberRecord{PKey: redKey, PortGID: gid("h2")}), "PortGID of h2"},
		"service":            {answer(mad.AttrServiceRecord, mad.ServiceRecord{ServiceGID: gid("h2"), ServicePKey: blueKey}), "ServiceGID of h2, ServiceP_Key 0x8202"},
		"service's key":      {answer(mad.AttrServiceRecord, mad.ServiceRecord{ServiceGID: gid("h1"), ServiceKey: ib.NewServiceKey([16]byte{1})}), "key ServiceKey"},
		"subscription":       {answer(mad.AttrInformInfoRecord, mad.InformInfoRecord{SubscriberGID: gid("h2"), InformInfo: mad.InformInfo{GID: gid("h5"), LIDRangeBegin: b.lidOf("h6")}}), "SubscriberGID of h2, InformInfo.GID of h5, InformInfo.LIDRangeBegin of h6"},
		"own subscription":   {answer(mad.AttrInformInfoRecord, mad.InformInfoRecord{SubscriberGID: gid("h1"), InformInfo: mad.InformInfo{LIDRangeBegin: mad.AllLIDs}}), ""},
		"lanes":              {answer(mad.AttrSLtoVLRecord, mad.SLtoVLMappingTableRecord{LID: leafLID, OutputPortNum: leaf.Port}), "LID of h2"},
		"lanes inbound":      {answer(mad.AttrSLtoVLRecord, mad.SLtoVLMappingTableRecord{LID: leafLID, InputPortNum: leaf.Port}), "LID of h2"},
		"arbitration":        {answer(mad.AttrVLArbitrationRecord, mad.VLArbitrationTableRecord{LID: b.lidOf("h2")}), "LID of h2"},
		"routes":             {answer(mad.AttrLinearForwardingRecord, lft(b.lidOf("h2"), 3)), "LID of an entry of h2"},
		"routes that drop":   {answer(mad.AttrLinearForwardingRecord, lft(b.lidOf("h2"), ib.NoPort)), ""},
		"routes to own":      {answer(mad.AttrLinearForwardingRecord, lft(b.lidOf("h3"), 3)), ""},
		"groups' routes":     {answer(mad.AttrMulticastForwardingRecord, mad.MulticastForwardingTableRecord{LID: leafLID, Position: uint8(leaf.Port / 16), MulticastForwardingTable: mad.MulticastForwardingTable{PortMask: [32]mad.PortMask{5: 1 << (leaf.Port % 16)}}}), "port of an entry of h2"},
		"switch information": {answer(mad.AttrSwitchInfoRecord, mad.SwitchInfoRecord{LID: leafLID}), ""},
		"trace":              {answer(mad.AttrTraceRecord, mad.TraceRecord{NodeID: 7}), ""},
	} {
		q := Question{}
		j := b.Judge(b.port("h1"), &q, c.answer, false)
		if got := b.seen(&j); got != c.want || !j.Answered || j.Records != 1 {
			t.Errorf("%s: found %q, want %q; %+v", name, got, c.want, j)
		}
		for i := range j.Findings {
			if f := &j.Findings[i]; f.Asker != b.port("h1") || f.Kind() == "" || (f.Value == "") != f.Secret {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// segments cuts records into an answer of several MADs.
func segments(attr mad.AttrID, size int, data []byte) (out []mad.MAD) {
	n := max(1, (len(data)+mad.SADataSize-1)/mad.SADataSize)
	for k := range n {
		var m mad.MAD
		m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGetTableResp, Attr: attr})
		m.SetAttributeOffset(uint16(size / 8))
		part := data[k*mad.SADataSize : min(len(data), (k+1)*mad.SADataSize)]
		copy(m.SAData(), part)
		flags := mad.RMPPActive
		if k == n-1 {
			flags |= mad.RMPPLast
			m.SetPayloadLength(uint32(len(part) + mad.SAHeaderSize))
		}
		m.SetRMPPVersion(mad.RMPPVersion)
		m.SetRMPPType(mad.RMPPData)
		m.SetRMPPFlags(flags)
		m.SetSegmentNumber(uint32(k + 1))
		out = append(out, m)
	}
	return out
}

// A table is judged record by record, over the ends of segments; each port is a finding once, and what is missing is counted.
func TestJudgeTables(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	size := mad.RecordSize(mad.AttrNodeRecord)
	var data []byte
	for range 3 {
		for _, h := range []string{"h1", "h3", "sm", "h2", "h5", "h6"} {
			rec := make([]byte, size)
			mad.MustEncode(rec, &mad.NodeRecord{LID: b.lidOf(h), NodeInfo: mad.NodeInfo{PortGUID: b.stage.GUID(h, 1)}})
			data = append(data, rec...)
		}
	}
	all := segments(mad.AttrNodeRecord, size, data)
	q := Question{}
	j := b.Judge(b.port("h1"), &q, all, false)
	if got := b.seen(&j); got != "LID of h2, LID of h5, LID of h6" || j.Records != 18 {
		t.Errorf("found %q in %d records", got, j.Records)
	}
	if j = b.Judge(b.port("h1"), &q, all[:len(all)-1], false); j.Undecided == 0 {
		t.Errorf("without its last segment: %+v", j)
	}
	if j = b.Judge(b.port("h1"), &q, all, true); j.Undecided != 1 {
		t.Errorf("cut: %+v", j)
	}
	// A LID that no port has may know nothing but infrastructure.
	j = b.Judge(None, &q, all, false)
	if got := b.seen(&j); got != "LID of h1, LID of h3, LID of h2, LID of h5, LID of h6" || j.Undecided != 0 {
		t.Errorf("a LID that no port has: %q", got)
	}
	if j = b.Judge(b.port("h1"), &q, segments(mad.AttrNodeRecord, size, nil), false); j.Records != 0 || !j.Answered || len(j.Findings)+j.Undecided > 0 {
		t.Errorf("an empty table: %+v", j)
	}
	if j = b.Judge(b.port("h1"), &q, nil, true); j.Answered || j.Undecided > 0 {
		t.Errorf("silence: %+v", j)
	}
	// The answer to a GetMulti has PathRecords.
	multi := answer(mad.AttrPathRecord, mad.PathRecord{DLID: b.lidOf("h2")})
	multi[0].SetMethod(mad.MethodGetMultiResp)
	multi[0].SetAttr(mad.AttrMultiPathRecord)
	if j = b.Judge(b.port("h1"), &q, multi, false); b.seen(&j) != "DLID of h2" {
		t.Errorf("of a GetMulti: %+v", j)
	}
}

// A refusal that repeats the question discloses nothing. One that says more is judged, and so is a key in the header.
func TestJudgeRefusals(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	q := Question{}
	mad.MustEncode(q.MAD.SAData(), &mad.PathRecord{DLID: b.lidOf("h2")})
	refusal := answer(mad.AttrPathRecord, mad.PathRecord{DLID: b.lidOf("h2")})
	refusal[0].SetStatus(mad.StatusNoRecords)
	if j := b.Judge(b.port("h1"), &q, refusal, false); j.Records+len(j.Findings)+j.Undecided > 0 {
		t.Errorf("the question: %+v", j)
	}
	refusal[0].SetSAKey(ib.NewSAKey(9))
	if j := b.Judge(b.port("h1"), &q, refusal, false); b.seen(&j) != "key SM_Key of the header" {
		t.Errorf("a key in the header: %+v", j)
	}
	refusal = answer(mad.AttrPathRecord, mad.PathRecord{DLID: b.lidOf("h5")})
	refusal[0].SetStatus(mad.StatusNoRecords)
	if j := b.Judge(b.port("h1"), &q, refusal, false); b.seen(&j) != "DLID of h5" {
		t.Errorf("more than the question: %+v", j)
	}
	if j := b.Judge(b.port("h1"), &q, answer(mad.AttrPathRecord, mad.PathRecord{DLID: b.lidOf("h2")}), false); b.seen(&j) != "DLID of h2" {
		t.Errorf("the question with status 0 is an answer: %+v", j)
	}
}
