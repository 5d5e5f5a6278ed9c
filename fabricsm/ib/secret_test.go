package ib

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const bits = 0x0123456789ABCDEF

// spellings are the ways the bits of the test key could come out.
var spellings = []string{
	strconv.FormatUint(bits, 10), strconv.FormatUint(bits, 2), strconv.FormatUint(bits, 8),
	"123456789abcdef", "123456789ABCDEF", "\x01\x23\x45\x67", "1 35 69 103", "0x1, 0x23",
}

type exported struct {
	Key  MKey
	SM   SMKey
	Many []MKey
	Map  map[string]SMKey
	Serv ServiceKey
	Ptr  *MKey
	Any  any
}

type hidden struct {
	key  MKey
	sm   SMKey
	many []MKey
	m    map[MKey]SMKey
	ptr  *MKey
	any  any
	serv ServiceKey
	in   struct{ deep exported }
}

func serviceKey(high, low uint64) ServiceKey {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], high)
	binary.BigEndian.PutUint64(b[8:], low)
	return NewServiceKey(b)
}

func secrets() []any {
	k, s, v := NewMKey(bits), NewSMKey(bits), serviceKey(bits, bits)
	e := exported{k, s, []MKey{k}, map[string]SMKey{"a": s}, v, &k, k}
	h := hidden{key: k, sm: s, many: []MKey{k}, m: map[MKey]SMKey{k: s}, ptr: &k, any: s, serv: v}
	h.in.deep = e
	text := NewSecretText(fmt.Sprintf("%x", bits))
	return []any{NewSAKey(bits), NewLockKey(bits), text, &text, struct{ in SecretText }{text}, k, s, v, &v, []ServiceKey{v}, &k, &s, []MKey{k}, [1]SMKey{s}, map[MKey]int{k: 1}, e, &e, h, &h, []hidden{h}, errors.Join(fmt.Errorf("key %v", k))}
}

func leaks(t *testing.T, how, out string) {
	t.Helper()
	for _, s := range spellings {
		if strings.Contains(out, s) {
			t.Errorf("%s shows the key as %q:\n%s", how, s, out)
		}
	}
}

// TestSecretsNeverPrint: a key in an unexported field is printed without its methods, so the loop over verbs covers values
// where no method can help.
func TestSecretsNeverPrint(t *testing.T) {
	for _, v := range secrets() {
		for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%x", "%X", "%#x", "%s", "%q", "%o", "%b", "%c", "%U", "%t", "%p", "%e", "%08.3v"} {
			leaks(t, fmt.Sprintf("%T with %s", v, verb), fmt.Sprintf(verb, v))
		}
		leaks(t, "Sprint", fmt.Sprint(v))
		if js, err := json.Marshal(v); err == nil {
			leaks(t, "JSON", string(js))
		}
		if x, err := xml.Marshal(v); err == nil {
			leaks(t, "XML", string(x))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "k", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "k", v, slog.Any("g", []any{v}))
		leaks(t, "slog", log.String())
	}
}

func TestSecretWords(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{NewMKey(bits), Redacted},
		{NewSMKey(bits), Redacted},
		{NewMKey(0), "none"},
		{SMKey{}, "none"},
		{serviceKey(bits, 0), Redacted},
		{serviceKey(0, bits), Redacted},
		{serviceKey(0, 0), "none"},
	} {
		js, err := json.Marshal(c.v)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{c.v.String(), fmt.Sprintf("%v", c.v), fmt.Sprintf("%#v", c.v), fmt.Sprintf("%x", c.v), strings.Trim(string(js), `"`)}
		want := []string{c.want, c.want, c.want, c.want, c.want}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%T (-want +got):\n%s", c.v, d)
		}
	}
}

func TestSecretValue(t *testing.T) {
	a, b := NewMKey(bits), NewMKey(bits)
	if a != b || !a.Equal(b) || a.Reveal() != bits || a == NewMKey(bits+1) || !reflect.DeepEqual(a, b) {
		t.Error("equal bits make different keys, or different bits equal ones")
	}
	if NewMKey(0) != (MKey{}) || !NewMKey(0).IsZero() || (MKey{}).Reveal() != 0 || a.IsZero() {
		t.Error("the zero key is not the key of zero bits")
	}
	s := NewSMKey(^uint64(0))
	if s.Reveal() != ^uint64(0) || s.IsZero() || !s.Equal(NewSMKey(^uint64(0))) || !NewSMKey(0).IsZero() {
		t.Error("SM_Key does not hold its bits")
	}
	v := serviceKey(bits, bits+1)
	if v.Reveal() != [16]byte{1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xF0} || v.IsZero() {
		t.Error("ServiceKey does not hold its bytes")
	}
	if !v.Equal(serviceKey(bits, bits+1)) || v.Equal(serviceKey(bits, bits)) || v.Equal(serviceKey(bits+1, bits+1)) || !serviceKey(0, 0).IsZero() {
		t.Error("ServiceKeys are not compared by all of their bytes")
	}
	if cmp.Equal(exported{Key: a}, exported{Key: NewMKey(1)}) || !cmp.Equal(exported{Key: a}, exported{Key: b}) {
		t.Error("cmp does not compare keys by their bits")
	}
}

func TestSecretAllocatesNothing(t *testing.T) {
	kept := NewMKey(bits)
	if n := testing.AllocsPerRun(100, func() {
		if NewMKey(bits).Reveal() != bits {
			t.Error("wrong bits")
		}
	}); n != 0 {
		t.Errorf("%v allocations per key in use, want none", n)
	}
	if kept.IsZero() {
		t.Error("key lost")
	}
}
