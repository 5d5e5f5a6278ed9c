package disclosure

import (
	"bytes"
	"strconv"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Finding is something in an answer that the port which asked must not know.
type Finding struct {
	Asker  int        // port, or None
	Record mad.AttrID // that was returned
	Field  string     // of the record
	Value  string     // of the field; empty: it is a key
	// Subject is the port that is named, None for a partition or a key.
	Subject int
	PKey    ib.PKey // of the partition that is named; 0: none
	Secret  bool    // the field is a key
}

// Kind returns the name of the kind of record.
func (f *Finding) Kind() string {
	return mad.Header{Class: mad.ClassSubnAdm, Attr: f.Record}.AttrName()
}

// Judgment is what follows from one answer.
type Judgment struct {
	Answered bool
	Records  int
	// Findings has each port, partition and key once for each kind of record.
	Findings []Finding
	// Undecided counts what could not be judged: names of ports that were not found or whose tables were not read, and answers that end too early.
	Undecided int
}

// maxFindings bounds the findings of one answer.
const maxFindings = 256

// Judge judges the answer to a question of a port, or of None: its segments in order, none if there was no answer. cut says that the answer
// is known to be incomplete. Answers of any content are judged.
func (t *Tables) Judge(asker int, q *Question, answer []mad.MAD, cut bool) (j Judgment) {
	if j.Answered = len(answer) > 0; !j.Answered {
		return j
	}
	v := verdict{Judgment: j, tables: t, asker: asker, record: answer[0].Attr(), seen: map[Finding]bool{}}
	if cut {
		v.Undecided++
	}
	for i := range answer {
		if answer[i].SAKeyBits() != 0 {
			v.key("SM_Key of the header")
		}
	}
	data, whole := payload(answer)
	if !whole {
		v.Undecided++
	}
	if answer[0].Method() == mad.MethodGetMultiResp && v.record == mad.AttrMultiPathRecord || v.record == mad.AttrTraceRecord && answer[0].AttributeOffset() == 0 {
		v.record = mad.AttrPathRecord
	}
	if answer[0].Status() != mad.StatusOK && (zero(data) || bytes.Equal(data, q.MAD.SAData())) {
		return v.Judgment // a refusal says what was asked
	}
	v.records(data, int(answer[0].AttributeOffset())*8)
	return v.Judgment
}

func zero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// payload returns the data of all segments, and whether the answer ends with its last one.
func payload(answer []mad.MAD) (data []byte, whole bool) {
	if !answer[0].RMPPFlags().Has(mad.RMPPActive) {
		return answer[0].SAData(), len(answer) == 1
	}
	for i := range answer {
		m := &answer[i]
		n := mad.SADataSize
		last := m.RMPPFlags().Has(mad.RMPPLast)
		if last {
			n = min(max(int(m.PayloadLength())-mad.SAHeaderSize, 0), n)
		}
		data = append(data, m.SAData()[:n]...)
		whole = last && i == len(answer)-1
	}
	return data, whole
}

// verdict collects a judgment.
type verdict struct {
	Judgment
	tables *Tables
	asker  int
	record mad.AttrID
	seen   map[Finding]bool // without their field and value
}

// records judges records that are so many bytes apart.
func (v *verdict) records(data []byte, size int) {
	least := mad.RecordSize(v.record)
	if size == 0 {
		size = least
	}
	for len(data) > 0 && size > 0 {
		n := min(size, len(data))
		if n < least && zero(data[:n]) {
			return // of one MAD that holds less than a record
		}
		v.Records++
		rec := make([]byte, max(least, n))
		copy(rec, data[:n])
		if n < least {
			v.Undecided++
		}
		v.names(rec)
		if data = data[n:]; zero(data) {
			return
		}
	}
}

func (v *verdict) add(f Finding) {
	f.Asker, f.Record = v.asker, v.record
	once := f
	once.Field, once.Value = "", ""
	if f.Secret {
		once.Field = f.Field
	}
	if !v.seen[once] && len(v.Findings) < maxFindings {
		v.seen[once] = true
		v.Findings = append(v.Findings, f)
	}
}

// key takes a key that is shown.
func (v *verdict) key(field string) { v.add(Finding{Field: field, Subject: None, Secret: true}) }

// port takes a port that is named.
func (v *verdict) port(i int, field, value string) {
	switch v.tables.between(v.asker, i) {
	case apart:
		v.add(Finding{Field: field, Value: value, Subject: i})
	case unclear:
		v.Undecided++
	case near:
	}
}

// lid takes a LID, and a port number if it is a switch's.
func (v *verdict) lid(lid ib.LID, num ib.PortNum, field string) {
	if !lid.IsUnicast() {
		return
	}
	value := lid.String()
	if sw, ok := v.tables.switches[lid]; ok {
		if i, host := v.tables.byPlace[ib.Place{Switch: sw, Port: num}]; host && num != 0 {
			v.port(i, field, value+" port "+strconv.Itoa(int(num)))
		}
		return
	}
	i, ok := v.tables.byLID[lid]
	if !ok || i < 0 {
		v.Undecided++
		return
	}
	v.port(i, field, value)
}

// guid takes a GUID of a port or of a node: the asker may know it if it may know of one of the ports with it.
func (v *verdict) guid(g ib.GUID, field string) {
	if g == 0 || v.tables.others[g] {
		return
	}
	with := v.tables.byGUID[g]
	if len(with) == 0 {
		v.Undecided++
		return
	}
	worst := near
	for _, i := range with {
		switch r := v.tables.between(v.asker, i); r {
		case near:
			return
		case unclear:
			worst = unclear
		case apart:
			if worst == near {
				worst = apart
			}
		}
	}
	if worst == unclear {
		v.Undecided++
		return
	}
	v.add(Finding{Field: field, Value: g.String(), Subject: with[0]})
}

func (v *verdict) gid(g ib.GID, field string) {
	if !g.IsMulticast() {
		v.guid(g.GUID(), field)
	}
}

// partition takes a P_Key that is named.
func (v *verdict) partition(k ib.PKey, field string) {
	if !k.Valid() {
		return
	}
	switch v.tables.holds(v.asker, k) {
	case apart:
		v.add(Finding{Field: field, Value: k.String(), Subject: None, PKey: k.Full()})
	case unclear:
		v.Undecided++
	case near:
	}
}
