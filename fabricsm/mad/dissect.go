package mad

import (
	"encoding/json"
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Dissection is all that can be said about the bytes of a MAD. Bytes that are
// missing at its end leave the parts they would have held empty, and Notes say
// so.
type Dissection struct {
	Header      Header
	BaseVersion uint8
	HasMKey     bool        // an SMP, and its M_Key is there
	MKey        ib.MKey     // of an SMP
	Route       *RouteState // of a directed-route SMP
	SA          *SAState    // of an MAD of subnet administration
	Layout      *Layout     // of Attribute and Records; nil: not known, or not there
	Attribute   any         // pointer to a value of Layout's type
	IssuerGID   *ib.GID     // of a reported notice
	SGIDs       []ib.GID    // that follow a MultiPathRecord, as far as they are there
	DGIDs       []ib.GID
	Records     []TableRecord // of a table of subnet administration, those that are whole
	Data        []byte        // the raw attribute of an SMP; shorter than DataSize if cut off
	Notes       []string      // missing, unusual or wrong parts, each a sentence
}

// RouteState is the directed-route part of an SMP.
type RouteState struct {
	Returning    bool   `json:"returning"`
	HopPointer   uint8  `json:"hop_pointer"`
	HopCount     uint8  `json:"hop_count"`
	DrSLID       ib.LID `json:"dr_slid"`
	DrDLID       ib.LID `json:"dr_dlid"`
	InitialPath  Route  `json:"initial_path"`
	ReturnPath   Route  `json:"return_path"`
	pathsMissing bool
}

// perfData is where the attributes of performance management begin (IBTA volume 1,
// 16.1.1).
const perfData = 64

// Dissect reads HeaderSize to Size bytes of a MAD. Fewer or more are an error, anything else is not: Notes report errors in
// the content.
func Dissect(b []byte) (*Dissection, error) {
	if len(b) < HeaderSize {
		return nil, fmt.Errorf("MAD: %w: %d, a MAD has %d and its header alone %d", ErrShort, len(b), Size, HeaderSize)
	}
	if len(b) > Size {
		return nil, fmt.Errorf("MAD: %d bytes, a MAD has %d: remove what a transport put around it (ibsim puts 32 bytes in front)", len(b), Size)
	}
	var m MAD
	copy(m[:], b)
	d := &Dissection{Header: m.Header(), BaseVersion: m.BaseVersion()}
	d.noteHeader(&m)
	if m.IsSMP() {
		d.dissectSMP(&m, len(b))
	} else {
		d.dissectGMP(&m, len(b))
	}
	return d, nil
}

func (d *Dissection) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

func (d *Dissection) noteHeader(m *MAD) {
	if d.BaseVersion != baseVersion {
		d.note("base version is %d, want 1: every agent discards this MAD", d.BaseVersion)
	}
	if m.IsSMP() && d.Header.ClassVersion != smpVersion {
		d.note("class version is %d, want 1 in an SMP", d.Header.ClassVersion)
	}
}

func (d *Dissection) dissectSMP(m *MAD, size int) {
	if size < offMKey+8 {
		d.note("the input ends at byte %d, before the M_Key at bytes 24 to 31", size)
		return
	}
	d.HasMKey, d.MKey = true, m.MKey()
	if m.IsDR() {
		d.dissectRoute(m, size)
	}
	if size <= offData {
		d.note("the input ends at byte %d, before the attribute at byte 64", size)
		return
	}
	d.Data = m.Data()[:min(size-offData, DataSize)]
	d.dissectAttribute(d.Data, offData, size)
}

func (d *Dissection) dissectRoute(m *MAD, size int) {
	d.Route = &RouteState{
		Returning: m.Returning(), HopPointer: m.HopPointer(), HopCount: m.HopCount(),
		DrSLID: m.DrSLID(), DrDLID: m.DrDLID(),
		InitialPath: m.Route(), ReturnPath: m.ReturnRoute(),
	}
	switch {
	case m.HopCount() > MaxHops:
		d.note("hop count is %d, at most %d are allowed: every agent discards this SMP", m.HopCount(), MaxHops)
	case m.HopPointer() > m.HopCount()+1:
		d.note("hop pointer %d is beyond the path of %d hops", m.HopPointer(), m.HopCount())
	}
	if size < offReturnPath+int(d.Route.ReturnPath.hops)+1 {
		d.Route.pathsMissing = true
		d.note("the input ends at byte %d, inside the paths at bytes 128 to 255", size)
	}
}

func (d *Dissection) dissectGMP(m *MAD, size int) {
	at := 0
	keyed, hasKey := LookupKeyClass(d.Header.Class)
	switch {
	case d.Header.Class == ClassPerf:
		at = perfData
	case d.Header.Class == ClassSubnAdm:
		d.dissectSA(m, size)
		return
	case hasKey:
		at = keyed.Data
	default:
		d.note("the attributes of class %v are not known here", d.Header.Class)
		return
	}
	if size <= at {
		d.note("the input ends at byte %d, before the attribute at byte %d", size, at)
		return
	}
	d.dissectAttribute(m[at:size], at, size)
}

// dissectAttribute decodes the attribute in p, which begins at byte at of the
// MAD.
func (d *Dissection) dissectAttribute(p []byte, at, size int) {
	l, known := LookupLayout(d.Header.Class, d.Header.Attr)
	if !known {
		d.note("attribute 0x%04x of class %v is not known here", uint16(d.Header.Attr), d.Header.Class)
		return
	}
	if d.Header.Method == MethodGet {
		if !allZero(p[:min(len(p), l.Size())]) {
			d.note("the attribute of a Get has no meaning, but the sender left bytes in it that are not zero")
		}
		return
	}
	v, err := l.Decode(p)
	if errors.Is(err, ErrShort) {
		d.note("the input ends at byte %d, inside %s at bytes %d to %d", size, l.Name(), at, at+l.Size()-1)
		return
	}
	if n, ok := v.(*Notice); ok && n.LayoutIn(d.Header.Class) != l {
		l = n.LayoutIn(d.Header.Class)
		if v, err = l.Decode(p); err != nil {
			d.note("notice: %v", err)
			return
		}
	}
	d.Layout, d.Attribute = l, v
}

func allZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// MarshalJSON returns the dissection as JSON. Secrets are redacted.
func (d *Dissection) MarshalJSON() ([]byte, error) {
	out := struct {
		Class        string            `json:"class"`
		ClassVersion uint8             `json:"class_version"`
		Method       string            `json:"method"`
		Status       string            `json:"status"`
		TID          string            `json:"transaction_id"`
		Attribute    string            `json:"attribute"`
		Modifier     uint32            `json:"attribute_modifier"`
		MKey         *ib.MKey          `json:"m_key,omitempty"`
		Route        *RouteState       `json:"route,omitempty"`
		SA           *SAState          `json:"sa,omitempty"`
		Layout       string            `json:"layout,omitempty"`
		Fields       json.RawMessage   `json:"fields,omitempty"`
		IssuerGID    *ib.GID           `json:"issuer_gid,omitempty"`
		SGIDs        []ib.GID          `json:"sgids,omitempty"`
		DGIDs        []ib.GID          `json:"dgids,omitempty"`
		Records      []json.RawMessage `json:"records,omitempty"`
		Notes        []string          `json:"notes,omitempty"`
	}{
		Class: d.Header.Class.String(), ClassVersion: d.Header.ClassVersion,
		Method: d.Header.Method.String(), Status: d.Header.StatusWords(), TID: d.Header.TID.String(),
		Attribute: d.Header.AttrName(), Modifier: d.Header.Mod, Route: d.Route, Notes: d.Notes,
		SA: d.SA, IssuerGID: d.IssuerGID, SGIDs: d.SGIDs, DGIDs: d.DGIDs,
	}
	if d.HasMKey {
		out.MKey = &d.MKey
	}
	if d.Layout != nil {
		out.Layout = d.Layout.Name()
	}
	var err error
	if d.Attribute != nil {
		if out.Fields, err = d.Layout.JSON(d.Attribute); err != nil {
			return nil, err
		}
	}
	if out.Records, err = d.recordsJSON(); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}
