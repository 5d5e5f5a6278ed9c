package rmpp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/mad"
)

// TestRecords makes records of many sizes, which lie across the borders of segments.
func TestRecords(t *testing.T) {
	for _, size := range []int{1, 8, 24, 56, 64, 112, 176, 199, 200} {
		for _, count := range []int{0, 1, 2, 3, 7, 100} {
			var want []byte
			for i := range count {
				want = append(want, bytes.Repeat([]byte{byte(i + 1)}, size)...)
			}
			m := &counter{rng: rand.New(rand.NewPCG(uint64(size), uint64(count))), left: count}
			var r Records
			r.Reset(m, size)
			var got []byte
			for then := ThenMore; then == ThenMore; {
				seg := bytes.Repeat([]byte{0xEE}, mad.SADataSize)
				var n int
				n, then = r.Fill(seg[:1+m.rng.IntN(mad.SADataSize)])
				got = append(got, seg[:n]...)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d records of %d bytes: got %d bytes, want %d", count, size, len(got), len(want))
			}
		}
	}
	for _, size := range []int{0, -1, 201} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a record of %d bytes is taken", size)
				}
			}()
			new(Records).Reset(nil, size)
		}()
	}
}

// counter makes records of its count, and pauses.
type counter struct {
	rng  *rand.Rand
	left int
	n    byte
}

func (c *counter) Make(rec []byte) Made {
	switch {
	case c.rng.IntN(3) == 0:
		return MadePause
	case c.left == 0:
		return MadeNothing
	}
	c.left--
	c.n++
	copy(rec, bytes.Repeat([]byte{c.n}, len(rec)))
	return MadeOne
}

// TestRecordsGiveUp has a maker that gives up between records.
func TestRecordsGiveUp(t *testing.T) {
	var r Records
	r.Reset(&limited{3}, 90)
	var seg [mad.SADataSize]byte
	if n, then := r.Fill(seg[:]); n != 200 || then != ThenMore {
		t.Errorf("%d bytes, then %d", n, then)
	}
	if n, then := r.Fill(seg[:]); n != 70 || then != ThenGiveUp {
		t.Errorf("%d bytes, then %d", n, then)
	}
}

// limited makes a few records, then gives up.
type limited struct{ left int }

func (l *limited) Make([]byte) Made {
	if l.left == 0 {
		return MadeGiveUp
	}
	l.left--
	return MadeOne
}
