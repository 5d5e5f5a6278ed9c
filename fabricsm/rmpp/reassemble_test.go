package rmpp

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"portcullis/fabricsm/mad"
)

// TestReassembleJudges changes one thing in good segments, and checks that it is reported.
func TestReassembleJudges(t *testing.T) {
	data := noise(rand.New(rand.NewPCG(1, 1)), 450)
	for _, tt := range []struct {
		name string
		edit func([]mad.MAD) []mad.MAD
		want string // empty: all is well
	}{
		{"as it is", func(s []mad.MAD) []mad.MAD { return s }, ""},
		{"length not told", func(s []mad.MAD) []mad.MAD { s[0].SetPayloadLength(0); return s }, ""},
		{"nothing", func([]mad.MAD) []mad.MAD { return nil }, "no segments"},
		{"length wrong", func(s []mad.MAD) []mad.MAD { s[0].SetPayloadLength(511); return s }, "segment 1 of 3: PayloadLength is 511, not 510"},
		{"middle has a length", func(s []mad.MAD) []mad.MAD { s[1].SetPayloadLength(220); return s }, "segment 2 of 3: PayloadLength is 220, not 0"},
		{"last without a length", func(s []mad.MAD) []mad.MAD { s[2].SetPayloadLength(0); return s }, "segment 3 of 3: PayloadLength is 0, not within 20 to 220"},
		{"one missing", func(s []mad.MAD) []mad.MAD { return append(s[:1], s[2]) }, "SegmentNumber is 3"},
		{"end missing", func(s []mad.MAD) []mad.MAD { return s[:2] }, "flags are Active, not Active|Last"},
		{"out of order", func(s []mad.MAD) []mad.MAD { s[1], s[0] = s[0], s[1]; return s }, "segment 2 of 3"},
		{"an ACK", func(s []mad.MAD) []mad.MAD { s[1].SetRMPPType(mad.RMPPAck); return s }, "type ACK"},
		{"another mask", func(s []mad.MAD) []mad.MAD { s[1].SetComponentMask(1); return s }, "its header is not that of the first"},
		{"another transaction", func(s []mad.MAD) []mad.MAD { s[2].SetTID(1); return s }, "its header is not that of the first"},
		{"old bytes", func(s []mad.MAD) []mad.MAD { s[2][mad.Size-1] = 1; return s }, "bytes behind the data are not 0"},
	} {
		got, err := Reassemble(tt.edit(all(t, data, len(data))))
		switch {
		case tt.want == "" && (err != nil || !bytes.Equal(got, data)):
			t.Errorf("%s: %d bytes, %v", tt.name, len(got), err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := Reassemble(with1(all(t, nil, 0), func(m *mad.MAD) { m.SetPayloadLength(0) })); err == nil {
		t.Error("an only segment without PayloadLength is taken")
	}
}

func with1(s []mad.MAD, f func(*mad.MAD)) []mad.MAD {
	f(&s[0])
	return s
}
