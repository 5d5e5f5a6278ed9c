package keystest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"
)

// TestFind: each form is found, wherever it stands.
func TestFind(t *testing.T) {
	v := Planted(3)
	be, le := binary.BigEndian.AppendUint64(nil, v), binary.LittleEndian.AppendUint64(nil, v)
	list, err := json.Marshal([8]byte(be))
	if err != nil {
		t.Fatal(err)
	}
	for name, sink := range map[string]string{
		"decimal": fmt.Sprint("key=", v), "signed": fmt.Sprint(int64(v)), "octal": fmt.Sprintf("%#o", v), "binary": fmt.Sprintf("%b", v),
		"hexadecimal": fmt.Sprintf("0x%x", v), "capitals": fmt.Sprintf("%X", v), "bytes": "abc" + string(be) + "x", "swapped bytes": string(le),
		"swapped digits": fmt.Sprintf("%x", le), "colons": fmt.Sprintf("% x", be), "slice": fmt.Sprintf("%d", be), "Go": fmt.Sprintf("%#v", be),
		"JSON list": string(list), "GUID": fmt.Sprintf("%x:%x:%x:%x", be[:2], be[2:4], be[4:6], be[6:]), "quoted": fmt.Sprintf("%q", be),
		"base64":            base64.StdEncoding.EncodeToString(be),
		"base64 in more, 1": base64.StdEncoding.EncodeToString(append([]byte("x"), append(be, "yz"...)...)),
		"base64 in more, 2": base64.URLEncoding.EncodeToString(append([]byte("xx"), append(le, "yz"...)...)),
	} {
		if New(Planted(0), v).Find([]byte(sink)) == nil {
			t.Errorf("%s: %q was not found", name, sink)
		}
	}
}

func TestFindSaysWhere(t *testing.T) {
	v := Planted(1)
	if got := New(v).Find(fmt.Appendf(nil, "m_key 0x%016x", v)); len(got) == 0 || got[0].At != 8 {
		t.Errorf("got %v, want byte 8", got)
	}
	if got := New(v).Find(fmt.Append(nil, Planted(2), "[secret]")); got != nil {
		t.Errorf("found %v where nothing is", got)
	}
}

func TestBytes(t *testing.T) {
	s, secret := &Scanner{}, bytes.Repeat([]byte("0123456789abcdef"), 4)
	s.Bytes("master", secret)
	if got := s.Find([]byte("..89abcdef..")); len(got) == 0 {
		t.Error("part of a long secret was not found")
	}
}

// show keeps the outcome of a check that is to fail.
type show struct {
	testing.TB
	failed bool
}

func (s *show) Helper()               {}
func (s *show) Errorf(string, ...any) { s.failed = true }

func TestCleanValueFindsWhatShows(t *testing.T) {
	v := Planted(5)
	for name, value := range map[string]any{
		"number": v, "exported": struct{ Key uint64 }{v}, "hidden": struct{ key uint64 }{v},
		"bytes": binary.LittleEndian.AppendUint64(nil, v), "text": fmt.Sprintf("%016X", v),
	} {
		s := &show{TB: t}
		New(v).CleanValue(s, value)
		if !s.failed {
			t.Errorf("%s: not found", name)
		}
	}
	s := &show{TB: t}
	New(v).CleanValue(s, struct{ Key uint64 }{Planted(6)})
	if s.failed {
		t.Error("found where nothing is")
	}
}
