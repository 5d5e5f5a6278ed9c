package eventlogtest

import (
	"crypto/sha1" //nolint:gosec // logs carry digests of it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"

	"portcullis/attest/eventlog"
)

// Bank is a hash algorithm of a log, by its number in the TCG's registry.
type Bank uint16

// Banks.
const (
	SHA1   Bank = 0x0004
	SHA256 Bank = 0x000b
	SHA384 Bank = 0x000c
)

func (b Bank) size() int { return len(b.sum(nil)) }

func (b Bank) sum(data []byte) []byte {
	switch b {
	case SHA1:
		d := sha1.Sum(data) //nolint:gosec // as above
		return d[:]
	case SHA384:
		d := sha512.Sum384(data)
		return d[:]
	default:
		d := sha256.Sum256(data)
		return d[:]
	}
}

// Writer writes a log. The zero Writer writes the SHA-256 bank alone.
type Writer struct {
	Banks []Bank
	out   []byte
	// Measured lists the measurements that a TPM would have received, in order.
	Measured []Measurement
}

// Measurement is what is extended into one register.
type Measurement struct {
	PCR     int
	Digests map[Bank][]byte
}

func le16(b []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(b, v) }
func le32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func le64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

func (w *Writer) banks() []Bank {
	if w.Banks == nil {
		return []Bank{SHA256}
	}
	return w.Banks
}

// Header returns the data of the first event: platform class 0, version 2.0.
func Header(banks ...Bank) []byte {
	b := append([]byte("Spec ID Event03\x00"), 0, 0, 0, 0, 0, 2, 0, 2)
	b = le32(b, uint32(len(banks)))
	for _, k := range banks {
		b = le16(le16(b, uint16(k)), uint16(k.size()))
	}
	return append(b, 0)
}

// Legacy returns an event in the layout of TPM 1.2, as the first one has.
func Legacy(pcr uint32, typ eventlog.Type, digest [20]byte, data []byte) []byte {
	b := append(le32(le32(nil, pcr), uint32(typ)), digest[:]...)
	return append(le32(b, uint32(len(data))), data...)
}

func (w *Writer) start() {
	if w.out == nil {
		w.out = Legacy(0, eventlog.NoAction, [20]byte{}, Header(w.banks()...))
	}
}

// Bytes returns the log.
func (w *Writer) Bytes() []byte {
	w.start()
	return w.out
}

// Registers returns the values of the SHA-256 bank after the measurements, from locality 0.
func (w *Writer) Registers() [eventlog.NumPCRs]eventlog.Digest {
	var l eventlog.Log
	for _, m := range w.Measured {
		l.Events = append(l.Events, eventlog.Event{PCR: m.PCR, Digest: eventlog.Digest(m.Digests[SHA256])})
	}
	return l.Replay()
}

// Measure logs an event whose digest is that of its data, as most are.
func (w *Writer) Measure(pcr int, typ eventlog.Type, data []byte) { w.MeasureOf(pcr, typ, data, data) }

// MeasureOf logs an event with data about content, which is what is measured.
func (w *Writer) MeasureOf(pcr int, typ eventlog.Type, content, data []byte) {
	m := Measurement{PCR: pcr, Digests: map[Bank][]byte{}}
	for _, k := range append([]Bank{SHA256}, w.banks()...) {
		m.Digests[k] = k.sum(content)
	}
	w.Measured = append(w.Measured, m)
	w.event(uint32(pcr), typ, m.Digests, data)
}

// NoAction logs an event that is not measured.
func (w *Writer) NoAction(pcr uint32, data []byte) {
	zero := map[Bank][]byte{}
	for _, k := range w.banks() {
		zero[k] = make([]byte, k.size())
	}
	w.event(pcr, eventlog.NoAction, zero, data)
}

func (w *Writer) event(pcr uint32, typ eventlog.Type, digests map[Bank][]byte, data []byte) {
	w.start()
	b := le32(le32(le32(w.out, pcr), uint32(typ)), uint32(len(w.banks())))
	for _, k := range w.banks() {
		b = append(le16(b, uint16(k)), digests[k]...)
	}
	w.out = append(le32(b, uint32(len(data))), data...)
}

// Append adds bytes as they are.
func (w *Writer) Append(b []byte) {
	w.start()
	w.out = append(w.out, b...)
}
