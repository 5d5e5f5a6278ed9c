package clientcert

import (
	"net/url"
	"strings"
	"testing"
)

var ids = []struct {
	text string
	ok   bool
}{
	{"spiffe://example.org/ns/prov/sa/maas", true},
	{"spiffe://example.org", true},
	{"spiffe://a", true},
	{"spiffe://1.2.3.4/x", true},
	{"spiffe://under_score.example-1.org/A.b-c_D9", true},
	{"spiffe://example.org/...", true},
	{"spiffe://example.org/.a", true},
	{"spiffe://-.-/x", true},
	{"spiffe://" + strings.Repeat("a", 255) + "/x", true},
	{"spiffe://a/" + strings.Repeat("x", MaxID-11), true},
	{"", false},
	{"spiffe", false},
	{"spiffe:/", false},
	{"spiffe://", false},
	{"spiffe:///x", false},
	{"Spiffe://example.org/x", false},
	{"https://example.org/x", false},
	{" spiffe://example.org/x", false},
	{"spiffe://example.org/x ", false},
	{"spiffe://Example.org/x", false},
	{"spiffe://example.org/", false},
	{"spiffe://example.org//x", false},
	{"spiffe://example.org/x/", false},
	{"spiffe://example.org/x//y", false},
	{"spiffe://example.org/./x", false},
	{"spiffe://example.org/x/..", false},
	{"spiffe://example.org/x/../y", false},
	{"spiffe://example.org/%61", false},
	{"spiffe://example.org/x?y", false},
	{"spiffe://example.org/x#y", false},
	{"spiffe://example.org?x", false},
	{"spiffe://example.org:443/x", false},
	{"spiffe://user@example.org/x", false},
	{"spiffe://[::1]/x", false},
	{"spiffe://example.org/\x00", false},
	{"spiffe://example.org/x\n", false},
	{"spiffe://exämple.org/x", false},
	{"spiffe://example.org/ä", false},
	{"spiffe://" + strings.Repeat("a", 256) + "/x", false},
	{"spiffe://a/" + strings.Repeat("x", MaxID-10), false},
}

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, tt := range ids {
		id, err := ParseID(tt.text)
		if (err == nil) != tt.ok || tt.ok && id.String() != tt.text {
			t.Errorf("%.100q: %+v, %v", tt.text, id, err)
		}
	}
}

// FuzzParseID: an ID is read to the byte, is a URL of the same parts, and is its own beginning up to any slash and nothing else.
func FuzzParseID(f *testing.F) {
	for _, tt := range ids {
		f.Add(tt.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err != nil {
			if id != (ID{}) {
				t.Errorf("%q: %+v beside an error", text, id)
			}
			return
		}
		u, err := url.Parse(text)
		if err != nil || id.String() != text || len(text) > MaxID || u.Scheme != "spiffe" || u.Host != id.TrustDomain || u.EscapedPath() != id.Path || u.User != nil || u.RawQuery+u.Fragment != "" || u.String() != text {
			t.Errorf("%q: %+v, as a URL %+v, %v", text, id, u, err)
		}
		if id.TrustDomain != strings.ToLower(id.TrustDomain) || strings.HasSuffix(id.Path, "/") || strings.Contains(id.Path+"/", "/../") || strings.Contains(id.Path+"/", "/./") || strings.Contains(id.Path, "//") {
			t.Errorf("%q is accepted", text)
		}
	})
}
