package tracecontext

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" // example of the recommendation

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse(sent)
	want := Parent{
		Trace:   [16]byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c},
		Span:    [8]byte{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31},
		Sampled: true,
	}
	if err != nil || got != want || got.String() != sent {
		t.Errorf("%+v %q, %v; want %+v", got, got, err, want)
	}
	trace, span := strings.Repeat("a", 32), strings.Repeat("b", 16)
	for text, sampled := range map[string]bool{
		"00-" + trace + "-" + span + "-00":              false,
		"00-" + trace + "-" + span + "-03":              true, // flags of later versions
		"00-" + trace + "-" + span + "-fe":              false,
		"01-" + trace + "-" + span + "-01":              true,
		"cc-" + trace + "-" + span + "-01-what-is-this": true,
	} {
		if p, err := Parse(text); err != nil || p.Sampled != sampled || p.IsZero() {
			t.Errorf("%q: %+v, %v; want sampled %v", text, p, err, sampled)
		}
	}
	for _, text := range []string{
		"", "00", sent[:54], sent + "-", sent + "-00", sent + "0", // of version 00 nothing follows
		"ff-" + sent[3:], "01-" + sent[3:] + ".x", "01-" + sent[3:] + "-" + strings.Repeat("x", maxLength),
		strings.ToUpper(sent), "0x-" + sent[3:], " " + sent[1:], sent[:53] + "0g", sent[:36] + "B" + sent[37:],
		"00_" + sent[3:], sent[:35] + "_" + sent[36:], sent[:52] + "_" + sent[53:],
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01", "00-" + trace + "-" + strings.Repeat("0", 16) + "-01",
	} {
		if p, err := Parse(text); err == nil || !p.IsZero() {
			t.Errorf("%q: %+v, %v; want it rejected", text, p, err)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	var p Parent
	if err := p.UnmarshalText([]byte(sent)); err != nil || p.String() != sent {
		t.Errorf("%q, %v", p, err)
	}
	if text, err := p.MarshalText(); err != nil || string(text) != sent {
		t.Errorf("%q, %v", text, err)
	}
	if err := p.UnmarshalText(nil); err != nil || !p.IsZero() || p.String() != "" {
		t.Errorf("of nothing %+v %q, %v", p, p, err)
	}
	if err := p.UnmarshalText([]byte("x")); err == nil {
		t.Error("x is taken")
	}
}

// TestMiddleware: a request is answered whatever it sends, and only one good header counts.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	var got Parent
	h := Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = Of(r.Context())
		w.WriteHeader(http.StatusNoContent)
	}))
	for _, c := range []struct {
		headers []string
		want    string
	}{
		{nil, ""}, {[]string{sent}, sent}, {[]string{"x"}, ""}, {[]string{sent, sent}, ""}, {[]string{strings.Repeat("x", 1<<16)}, ""},
	} {
		got = Parent{Sampled: true}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, h := range c.headers {
			r.Header.Add("traceparent", h)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusNoContent || got.String() != c.want {
			t.Errorf("%.60q: %d, %q; want %q", c.headers, w.Code, got, c.want)
		}
	}
	if !Of(t.Context()).IsZero() {
		t.Error("a context without a request has a parent")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sent)
	f.Add("cc-" + sent[3:] + "-more")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if (err == nil) == p.IsZero() {
			t.Fatalf("%q: %+v, %v", text, p, err)
		}
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again != p || len(p.String()) != length {
			t.Errorf("%q is written as %q: %+v, %v", text, p, again, err)
		}
	})
}
