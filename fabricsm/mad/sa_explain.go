package mad

import (
	"encoding/json"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// sa writes the part between common header and data.
func (e *explainer) sa(d *Dissection) {
	s := d.SA
	if r := s.RMPP; r == (RMPPHeader{}) {
		e.printf("RMPP: none")
	} else {
		e.rmpp(r)
	}
	if s.headerMissing {
		return
	}
	e.printf("SM_Key: %s", keyString(s.SAKey.Reveal(), s.SAKey.String(), e.o.Secrets))
	e.printf("AttributeOffset: %d (%d bytes)", s.AttributeOffset, int(s.AttributeOffset)*offsetUnit)
	e.printf("ComponentMask: 0x%016x%s", uint64(s.ComponentMask), inBrackets(s.Components))
}

func (e *explainer) rmpp(r RMPPHeader) {
	e.printf("RMPPVersion: %d", r.Version)
	e.printf("RMPPType: %d (%v)", uint8(r.Type), r.Type)
	if r.RespTime == NoRespTime {
		e.printf("RRespTime: %d (none)", uint8(r.RespTime))
	} else {
		e.printf("RRespTime: %d (%v)", uint8(r.RespTime), r.RespTime.Duration())
	}
	e.printf("RMPPFlags: 0x%02x (%v)", uint8(r.Flags), r.Flags)
	e.printf("RMPPStatus: %d (%v)", uint8(r.Status), r.Status)
	one, two := "Data1", "Data2"
	switch r.Type {
	case RMPPData:
		one, two = "SegmentNumber", "PayloadLength"
	case RMPPAck:
		one, two = "SegmentNumber", "NewWindowLast"
	default:
	}
	e.printf("%s: %d", one, r.Data1)
	e.printf("%s: %d", two, r.Data2)
}

func inBrackets(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// behind writes what follows the attribute of an SA MAD.
func (e *explainer) behind(d *Dissection) {
	if d.IssuerGID != nil {
		e.printf("IssuerGID: %v", *d.IssuerGID)
	}
	for i, g := range d.SGIDs {
		e.printf("SGID[%d]: %v", i, g)
	}
	for i, g := range d.DGIDs {
		e.printf("DGID[%d]: %v", i, g)
	}
	for _, r := range d.Records {
		e.printf("%s[%d]:", d.Layout.Name(), r.Number)
		e.value(d.Layout, r.Value)
	}
}

// MarshalJSON returns the state as JSON. The key is redacted.
func (s *SAState) MarshalJSON() ([]byte, error) {
	type rmpp struct {
		Version       uint8  `json:"version"`
		Type          string `json:"type"`
		RespTime      uint8  `json:"resp_time"`
		Flags         string `json:"flags"`
		Status        string `json:"status"`
		SegmentNumber uint32 `json:"data1"`
		Length        uint32 `json:"data2"`
	}
	out := struct {
		RMPP            *rmpp     `json:"rmpp,omitempty"`
		SMKey           *ib.SAKey `json:"sm_key,omitempty"`
		AttributeOffset uint16    `json:"attribute_offset"`
		ComponentMask   string    `json:"component_mask,omitempty"`
		Components      []string  `json:"components,omitempty"`
	}{AttributeOffset: s.AttributeOffset, Components: s.Components}
	if r := s.RMPP; r != (RMPPHeader{}) {
		out.RMPP = &rmpp{r.Version, r.Type.String(), uint8(r.RespTime), r.Flags.String(), r.Status.String(), r.Data1, r.Data2}
	}
	if !s.headerMissing {
		out.SMKey, out.ComponentMask = &s.SAKey, fmt.Sprintf("0x%016x", uint64(s.ComponentMask))
	}
	return json.Marshal(out)
}

// recordsJSON returns the whole records of a table.
func (d *Dissection) recordsJSON() ([]json.RawMessage, error) {
	var out []json.RawMessage
	for _, r := range d.Records {
		fields, err := d.Layout.JSON(r.Value)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(struct {
			Number uint64          `json:"number"`
			Fields json.RawMessage `json:"fields"`
		}{r.Number, fields})
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
