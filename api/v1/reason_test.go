package v1_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	v1 "portcullis/api/v1"
)

func TestDecodeReason(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"ticket 88":                "ticket 88",
		"a+b,c;d=\"e\"":            "a+b,c;d=\"e\"",
		"%4cink":                   "Link",
		"T%C3%BCr%20%E2%82%AC":     "Tür €",
		"%F0%9F%94%92":             "🔒",
		"  padded%20 ":             "padded",
		"%E2%9A%A0%EF%B8%8F%20hot": "⚠\ufe0f hot",
		"a" + strings.Repeat("%CC%81", 4) + "e" + strings.Repeat("%CC%81", 4): "a" + strings.Repeat("\u0301", 4) + "e" + strings.Repeat("\u0301", 4),
		"100%25":                            "100%",
		"%D7%A9%D7%9C%D7%95%D7%9D":          "שלום",
		strings.Repeat("%E2%82%AC", 256):    strings.Repeat("€", 256),
		strings.Repeat("%F0%9F%94%92", 256): strings.Repeat("🔒", 256),
	} {
		if got, err := v1.DecodeReason(value); err != nil || got != want {
			t.Errorf("%.60q: %q, %v; want %q", value, got, err, want)
		}
	}
}

func TestDecodeReasonRefuses(t *testing.T) {
	t.Parallel()
	for value, why := range map[string]string{
		"":                                "empty",
		" %20 ":                           "empty",
		"a%":                              "percent-encoding",
		"a%2":                             "percent-encoding",
		"100% sure":                       "percent-encoding",
		"é":                               "ASCII",
		"a\tb":                            "ASCII",
		"a%0Ab":                           "U+000A",
		"a%0d%0aSet-Cookie: x":            "U+000D",
		"a%00":                            "U+0000",
		"a%1b[2J":                         "U+001B",
		"a%7F":                            "U+007F",
		"a%C2%85b":                        "U+0085",
		"%E2%80%AEgnp.exe":                "U+202E",
		"%E2%81%A6x%E2%81%A9":             "U+2066",
		"%E2%80%A8x":                      "U+2028",
		"x%0A":                            "U+000A",
		"x%E2%80%A8y":                     "U+2028",
		"x%E2%80%8By":                     "U+200B",
		"%E2%A0%80":                       "U+2800", // blank of Braille
		"%E3%85%A4":                       "U+3164", // fillers of Hangul
		"x%EF%BE%A0":                      "U+FFA0",
		"x%E1%85%9Fy":                     "U+115F",
		"x%E1%85%A0y":                     "U+1160",
		"x%CD%8Fy":                        "U+034F", // joiner of graphemes
		"x%EF%B8%80":                      "U+FE00", // selectors of variants
		"x%EF%B8%8F":                      "U+FE0F",
		"%F0%9F%94%92%EF%B8%8F%EF%B8%8F":  "U+FE0F",
		"x%F3%A0%84%80":                   "U+E0100",
		"%E1%9E%B4":                       "U+17B4",
		"%CC%81":                          "on no character",
		"a%20%CC%81":                      "on no character",
		"a" + strings.Repeat("%CC%81", 5): "marks on one character",
		"%FF":                             "UTF-8",
		"%C0%8A":                          "UTF-8",
		"%ED%A0%80":                       "UTF-8",
		strings.Repeat("a", 257):          "257 characters",
		strings.Repeat("a", 4000):         "bytes",
		strings.Repeat("%E2%82%AC", 257):  "257 characters",
	} {
		got, err := v1.DecodeReason(value)
		if err == nil || got != "" || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60q: %q, %v; want an error with %q", value, got, err, why)
		}
	}
}

// FuzzReason: what is decoded can be printed, is bounded, and is the same once more.
func FuzzReason(f *testing.F) {
	for _, s := range []string{"ticket 88", "T%C3%BCr", "%0a", "%E2%80%AE", "%", strings.Repeat("%F0%9F%94%92", 256)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		text, err := v1.DecodeReason(value)
		if err != nil {
			return
		}
		if n := utf8.RuneCountInString(text); n < 1 || n > v1.MaxReason || v1.ReasonText(text) != nil || strings.Trim(text, " ") != text {
			t.Fatalf("%q is accepted as %q", value, text)
		}
		header := v1.EncodeReason(text)
		if len(header) > v1.MaxReasonHeader || strings.ContainsFunc(header, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q is encoded as %q", text, header)
		}
		if again, err := v1.DecodeReason(header); err != nil || again != text {
			t.Fatalf("%q is read back as %q: %v", text, again, err)
		}
	})
}
