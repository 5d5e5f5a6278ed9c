package mad

// Redact puts zeros in place of every key that a MAD may hold, so that it can be kept where keys must not be: M_Keys,
// SM_Keys, SA_Keys, ServiceKeys and keys of classes, in headers, attributes and notices of wrong keys. Unknown data count
// as a key: attributes without a layout, and all but the header of classes that this package does not know. P_Keys and
// Q_Keys stay.
func Redact(m *MAD) {
	switch c := m.Class(); {
	case m.IsSMP():
		clear(m[offMKey : offMKey+keySize])
		redactAttribute(m, m.Data())
	case c == ClassSubnAdm:
		clear(m[offSMKey : offSMKey+keySize])
		redactRecords(m)
	case c == ClassPerf:
		// It has no keys.
	default:
		k, ok := LookupKeyClass(c)
		if !ok {
			clear(m[HeaderSize:])
			return
		}
		clear(m[offMKey : offMKey+keySize])
		redactAttribute(m, k.Attribute(m))
	}
}

// keySize is the length of the keys in headers.
const keySize = 8

// redactAttribute is Redact for a single attribute at the start of data.
func redactAttribute(m *MAD, data []byte) {
	l := layoutIn(m, data)
	if l == nil {
		clear(data)
		return
	}
	l.redact(data, 0)
}

// layoutIn is LookupLayout for the attribute at the start of data, with notices by their trap number.
func layoutIn(m *MAD, data []byte) *Layout {
	l, ok := LookupLayout(m.Class(), m.Attr())
	if !ok {
		return nil
	}
	if m.Attr() == AttrNotice {
		var n Notice
		if Decode(data, &n) != nil {
			return nil
		}
		return n.LayoutIn(m.Class())
	}
	return l
}

// redactRecords is Redact for the data of an MAD of subnet administration. A segment
// may begin in the middle of a record.
func redactRecords(m *MAD) {
	data := m.SAData()
	l := layoutIn(m, data)
	switch {
	case l == nil:
		clear(data)
		return
	case !m.RMPPFlags().Has(RMPPActive):
		l.redact(data, 0)
		return
	case !l.hasKeys():
		return
	}
	each, segment := int(m.AttributeOffset())*offsetUnit, m.SegmentNumber()
	if m.RMPPType() != RMPPData || each < l.size || segment == 0 || segment > maxRedacted {
		clear(data)
		return
	}
	begun := int(segment-1) * SADataSize % each
	for at := -begun; at < len(data); at += each {
		l.redact(data, at)
	}
}

// maxRedacted is the last segment in which records are looked for.
const maxRedacted = 1 << 24

// redact clears the keys of an attribute that begins at an index of data, which may be before its start; parts beyond its
// end are ignored.
func (l *Layout) redact(data []byte, at int) {
	for i := range l.fields {
		f := &l.fields[i]
		if !f.mayHoldKey() {
			continue
		}
		from, to := at+f.Bit/8, at+(f.End()+7)/8
		if from, to = max(from, 0), min(to, len(data)); from < to {
			clear(data[from:to])
		}
	}
}

// hasKeys reports whether a layout has a field that may hold a key.
func (l *Layout) hasKeys() bool {
	for i := range l.fields {
		if l.fields[i].mayHoldKey() {
			return true
		}
	}
	return false
}

func (f *Field) mayHoldKey() bool {
	return f.Format == FormatKey || f.typ != nil && isSecret(f.typ)
}
