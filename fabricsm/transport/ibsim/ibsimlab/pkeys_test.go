package ibsimlab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestParsePKeys(t *testing.T) {
	const table = "   0: 0x7fff 0x8001 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 \n" +
		"   8: 0x0000 0x0002 0x0000 0x0000 0x0000 0x0000 0x0000 0x0000 \n"
	const trailer = "64 pkeys capacity for this port\n"
	for _, c := range []struct {
		name, out string
		want      []ib.PKey
		refused   bool
	}{
		{"table", table + trailer, []ib.PKey{0x7fff, 0x8001, 0x0002}, false},
		{"empty table", "   0: 0x0000 0x0000\n" + trailer, nil, false},
		{"cut off", table, nil, true},
		{"nothing", "", nil, true},
		{"complaint", "smpquery: iberror: failed: operation pkeys: 0x7fff", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parsePKeys(c.out)
			if (err != nil) != c.refused {
				t.Fatalf("got error %v, want refused %v", err, c.refused)
			}
			if d := cmp.Diff(c.want, got); d != "" && !c.refused {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
