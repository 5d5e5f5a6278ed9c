package records

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestKey(t *testing.T) {
	k := Key{PKey: 0x12, GUID: 0x2c90300a1b2c1, Place: ib.Place{Switch: 0x10, Port: 7}}
	const text = "0x0012/0x0002c90300a1b2c1/0x0000000000000010-7"
	if got := k.String(); got != text {
		t.Errorf("got %s, want %s", got, text)
	}
	full := k
	full.PKey = k.PKey.Full()
	if got := full.String(); got != text {
		t.Errorf("full member: got %s, want %s", got, text)
	}
	if !strings.HasPrefix(text, PKeyPrefix(full.PKey)) {
		t.Errorf("%s is not below %s", text, PKeyPrefix(full.PKey))
	}
	back, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(k, back); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestParseKeyRefuses(t *testing.T) {
	for _, s := range []string{"", "0x12", "0x12/0x1", "x/0x1/0x1-1", "0x12/y/0x1-1", "0x12/0x1/0x1", "0x12/0x1/0x1-1/2", "0x12/0x1/0x1-999"} {
		if k, err := ParseKey(s); err == nil {
			t.Errorf("ParseKey(%q) = %v, want an error", s, k)
		}
	}
}
