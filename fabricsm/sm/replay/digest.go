package replay

import (
	"encoding/binary"
	"encoding/json"
	"hash"
	"hash/crc32"
	"time"

	"portcullis/fabricsm/sm"
)

// parts are the parts of an output that are compared, by name.
var parts = [...]string{"facts to save", "answers", "requests", "events", "time to be woken", "routing job"}

// digest is a checksum of each part of an output.
type digest [len(parts)]uint32

// digestOf returns the digest of an output, times counted from began and keys veiled.
func digestOf(out *sm.Output, began time.Time, v *veil) (d digest) {
	sums := [len(parts)]hash.Hash32{}
	for i := range sums {
		sums[i] = crc32.New(crc32.MakeTable(crc32.Castagnoli))
	}
	for _, f := range out.Save {
		text, err := json.Marshal(f)
		if err != nil {
			text = []byte(err.Error())
		}
		sums[0].Write(text)
	}
	var n [16]byte
	for i := range out.Answer {
		a := out.Answer[i]
		v.mad(&a.MAD)
		binary.BigEndian.PutUint16(n[:], uint16(a.LID))
		binary.BigEndian.PutUint32(n[2:], a.QP)
		sums[1].Write(n[:6])
		sums[1].Write(a.MAD[:])
	}
	for i := range out.Send {
		r := out.Send[i]
		v.mad(&r.MAD)
		binary.BigEndian.PutUint32(n[:], uint32(r.ID))
		binary.BigEndian.PutUint16(n[4:], uint16(r.LID))
		sums[2].Write(n[:6])
		sums[2].Write(r.MAD[:])
	}
	for _, e := range out.Events {
		sums[3].Write([]byte(e.String() + "\n"))
	}
	if !out.Wake.IsZero() {
		binary.BigEndian.PutUint64(n[:], uint64(out.Wake.Sub(began)))
		sums[4].Write(n[:8])
	}
	if out.Job != nil {
		sums[5].Write([]byte{1})
	}
	for i := range sums {
		d[i] = sums[i].Sum32()
	}
	return d
}

func (d *digest) bytes() []byte {
	b := make([]byte, 0, 4*len(d))
	for _, v := range d {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}
