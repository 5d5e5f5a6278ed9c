package mad

import (
	"bytes"
	"errors"
	"testing"
)

func TestEncodeRange(t *testing.T) {
	p := bytes.Repeat([]byte{0xFF}, 80)
	err := Encode(p, &PortInfo{LMC: 8})
	if !errors.Is(err, ErrRange) {
		t.Fatalf("error %v, want ErrRange", err)
	}
	if got, want := err.Error(), "PortInfo field LMC: value does not fit its field: 8, largest is 7"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if want := append(make([]byte, 64), bytes.Repeat([]byte{0xFF}, 16)...); !bytes.Equal(p, want) {
		t.Errorf("bytes after the error\n%x, want\n%x", p, want)
	}
}

func TestSetHeaderKeepsDirection(t *testing.T) {
	var m MAD
	r := MakeRoute(1, 2)
	NewSMP(&m, Header{Method: MethodGet, Attr: AttrNodeInfo}, &r, m.MKey())
	m.Respond(StatusBusy)
	if !m.Returning() || m.Status() != StatusBusy || m.Method() != MethodGetResp {
		t.Fatalf("after Respond: returning %v, status %v, method %v", m.Returning(), m.Status(), m.Method())
	}
	h := m.Header()
	h.Status = StatusOK
	m.SetHeader(h)
	if !m.Returning() || m.Status() != StatusOK {
		t.Errorf("after SetHeader: returning %v, status %v", m.Returning(), m.Status())
	}
	if m.Route() != r {
		t.Errorf("route %v, want %v", m.Route(), r)
	}
}
