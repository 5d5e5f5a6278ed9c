package mad

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestHeaderRoundTrip(t *testing.T) {
	want := Header{
		Class: ClassSubn, ClassVersion: 1, Method: MethodSet, Status: StatusInvalidField | 0x8100,
		TID: 0x0123456789ABCDEF, Attr: AttrSMInfo, Mod: 0xDEADBEEF,
	}
	var m MAD
	m.SetHeader(want)
	if d := cmp.Diff(want, m.Header()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	bytes := [HeaderSize]byte{1, 1, 1, 2, 0x81, 0x1C, 0, 0, 1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0, 0x20, 0, 0, 0xDE, 0xAD, 0xBE, 0xEF}
	if got := [HeaderSize]byte(m[:]); got != bytes {
		t.Errorf("bytes %x, want %x", got, bytes)
	}
}

func TestDirectionSharesStatus(t *testing.T) {
	var m MAD
	r := MakeRoute(1, 2)
	NewSMP(&m, Header{Method: MethodGet, Attr: AttrNodeInfo}, &r, ib.MKey{})
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

func TestNewSMP(t *testing.T) {
	m := MAD{0: 9, 70: 9, 255: 9}
	NewSMP(&m, Header{Class: ClassPerf, Method: MethodGet, Attr: AttrNodeInfo, TID: 5}, nil, ib.NewMKey(0x1122334455667788))
	if m.Class() != ClassSubn || m.ClassVersion() != 1 || m.IsDR() || !m.IsSMP() || m.IsResponse() {
		t.Errorf("class %v version %d", m.Class(), m.ClassVersion())
	}
	if m.MKey() != ib.NewMKey(0x1122334455667788) || m[24] != 0x11 || m[31] != 0x88 {
		t.Errorf("M_Key bytes %x", m[24:32])
	}
	if m[70] != 0 || m[255] != 0 {
		t.Error("old bytes are left")
	}
	d := m.Data()
	if len(d) != 64 || cap(d) != 64 {
		t.Errorf("data has length %d, capacity %d", len(d), cap(d))
	}
}

// TestDirectedRouteBytes: a directed route on the wire: IBTA volume 1, 14.2.1.2.
func TestDirectedRouteBytes(t *testing.T) {
	var m MAD
	r := MakeRoute(1, 2, 254)
	NewSMP(&m, Header{Method: MethodGet, Attr: AttrNodeInfo}, &r, ib.MKey{})
	if m[6] != 0 || m[7] != 3 || m[32] != 0xFF || m[33] != 0xFF || m[34] != 0xFF || m[35] != 0xFF {
		t.Errorf("hop pointer %d, hop count %d, DR LIDs %x", m[6], m[7], m[32:36])
	}
	if got, want := [5]byte(m[128:133]), [5]byte{0, 1, 2, 254, 0}; got != want {
		t.Errorf("initial path %v, want %v", got, want)
	}
	m.SetHopPointer(3)
	m.ReturnPath()[1], m.ReturnPath()[3] = 7, 9
	m.SetDrSLID(0x0102)
	m.SetDrDLID(0x0304)
	if m.HopPointer() != 3 || m[193] != 7 || m.ReturnRoute() != MakeRoute(7, 0, 9) || m.DrSLID() != 0x0102 || m.DrDLID() != 0x0304 {
		t.Errorf("hop pointer %d, return route %v, DR LIDs %v %v", m.HopPointer(), m.ReturnRoute(), m.DrSLID(), m.DrDLID())
	}
	m[7] = 200
	if m.HopCount() != 200 || m.Route().Len() != MaxHops {
		t.Errorf("hop count %d, route of %d hops", m.HopCount(), m.Route().Len())
	}
}

func TestViewsAllocateNothing(t *testing.T) {
	r := MakeRoute(1, 2)
	key := ib.NewMKey(77)
	var m MAD
	if n := testing.AllocsPerRun(100, func() {
		NewSMP(&m, Header{Method: MethodSet, Attr: AttrPortInfo}, &r, key)
		m.SetHeader(m.Header())
		m.Respond(StatusOK)
		if m.MKey() != key || m.Route() != r || len(m.Data()) != DataSize {
			t.Error("wrong view")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMethodResponse(t *testing.T) {
	for m, want := range map[Method]Method{
		MethodGet: MethodGetResp, MethodSet: MethodGetResp, MethodGetResp: MethodGetResp,
		MethodTrap: MethodTrapRepress, MethodTrapRepress: MethodTrapRepress,
		MethodReport: MethodReportResp, MethodGetTable: MethodGetTableResp, MethodGetTrace: MethodGetTableResp,
		MethodGetMulti: MethodGetMultiResp, MethodDelete: MethodDeleteResp,
	} {
		if got := m.Response(); got != want {
			t.Errorf("%v: %v, want %v", m, got, want)
		}
		if !want.IsResponse() {
			t.Errorf("%v is no response", want)
		}
	}
	for _, m := range []Method{MethodGet, MethodSet, MethodSend, MethodTrap, MethodReport} {
		if m.IsResponse() {
			t.Errorf("%v is a response", m)
		}
	}
}

func TestStatusWords(t *testing.T) {
	for s, want := range map[Status]string{
		0:                           "ok",
		StatusBusy:                  "busy",
		StatusRedirect:              "redirection required",
		StatusUnsupportedVersion:    "unsupported base or class version",
		StatusUnsupportedMethod:     "unsupported method",
		StatusUnsupportedMethodAttr: "unsupported method and attribute combination",
		StatusInvalidField:          "invalid attribute or modifier field",
		0x0010:                      "reserved code 0x10",
		StatusBusy | 0x0C | 0x0200:  "busy, unsupported method and attribute combination, class specific 0x02",
		StatusInvalidField | 0x00E0: "invalid attribute or modifier field, reserved bits 0xe0",
	} {
		if got := s.String(); got != want {
			t.Errorf("%#04x: %q, want %q", uint16(s), got, want)
		}
	}
	if s := Status(0x021D); !s.IsBusy() || s.Code() != StatusInvalidField || s.ClassSpecific() != 2 {
		t.Errorf("busy %v, code %v, class specific %d", s.IsBusy(), s.Code(), s.ClassSpecific())
	}
}
