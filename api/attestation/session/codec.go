package session

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"portcullis/attest"
)

// The text of a token is binary and as short as can be: agents of the version before keep 1024 bytes of an id. It is a
// row of numbers, and of fields with their length before them.

var errText = errors.New("no session that this version wrote")

type fieldWriter struct{ out []byte }

func (w *fieldWriter) bytes(b []byte) {
	w.out = append(binary.AppendUvarint(w.out, uint64(len(b))), b...)
}

func (w *fieldWriter) text(s string) { w.bytes([]byte(s)) }

func (w *fieldWriter) number(n int64) { w.out = binary.AppendVarint(w.out, n) }

func (w *fieldWriter) time(t time.Time) { w.number(t.UnixNano()) }

// digest writes hexadecimal digits as bytes.
func (w *fieldWriter) digest(s string) error {
	b, err := hex.DecodeString(s)
	if err == nil {
		w.bytes(b)
	}
	return err
}

type fieldReader struct {
	in  []byte
	bad bool
}

func (r *fieldReader) bytes() []byte {
	n, size := binary.Uvarint(r.in)
	if r.bad = r.bad || size <= 0 || n > uint64(len(r.in)-size); r.bad {
		return nil
	}
	out := r.in[size : size+int(n) : size+int(n)]
	r.in = r.in[size+int(n):]
	return out
}

func (r *fieldReader) text() string { return string(r.bytes()) }

func (r *fieldReader) number() int64 {
	n, size := binary.Varint(r.in)
	if r.bad = r.bad || size <= 0; r.bad {
		return 0
	}
	r.in = r.in[size:]
	return n
}

func (r *fieldReader) time() time.Time { return time.Unix(0, r.number()).UTC() }

func (r *fieldReader) digest() string { return hex.EncodeToString(r.bytes()) }

// count reads how many things follow, each of at least a byte.
func (r *fieldReader) count() int {
	n := r.number()
	if r.bad = r.bad || n < 0 || n > int64(len(r.in)); r.bad {
		return 0
	}
	return int(n)
}

// encode returns the session without its number.
func (s *Session) encode() ([]byte, error) {
	c, w := s.Challenge, &fieldWriter{}
	w.text(s.Host)
	w.number(s.Epoch)
	w.number(s.Row)
	w.text(s.Source)
	locks := int64(0)
	if s.Locks {
		locks = 1
	}
	w.number(locks)
	w.time(c.Issued)
	w.time(c.Expires)
	w.bytes(c.Secret)
	w.bytes(c.Nonce)
	if err := w.digest(strings.ToLower(c.EKDigest)); err != nil {
		return nil, err
	}
	w.number(int64(len(c.EKNotes)))
	for _, n := range c.EKNotes {
		w.text(n)
	}
	w.bytes(c.EKName)
	w.number(int64(len(c.Issuers)))
	for _, i := range c.Issuers {
		if err := w.digest(i); err != nil {
			return nil, err
		}
	}
	for _, text := range []string{c.TPM.Maker, c.TPM.Name, c.TPM.Version, c.Start.Agent, c.Start.Image} {
		w.text(text)
	}
	w.number(int64(len(c.StatementDigests)))
	for _, d := range c.StatementDigests {
		w.bytes(d)
	}
	w.bytes(c.AK1Public)
	w.bytes(c.AK2Public)
	w.number(int64(len(c.PCRs)))
	for _, p := range c.PCRs {
		w.number(int64(p))
	}
	w.number(int64(c.AgentPCR))
	w.text(c.Channel)
	return w.out, nil
}

// decode reads what encode wrote.
func decode(b []byte) (Session, error) {
	r := &fieldReader{in: b}
	c := &attest.Challenge{}
	ses := Session{Challenge: c, Host: r.text(), Epoch: r.number(), Row: r.number(), Source: r.text(), Locks: r.number() == 1}
	c.Host = ses.Host
	c.Issued, c.Expires = r.time(), r.time()
	c.Secret, c.Nonce, c.EKDigest = r.bytes(), r.bytes(), r.digest()
	for range r.count() {
		c.EKNotes = append(c.EKNotes, r.text())
	}
	c.EKName = r.bytes()
	for range r.count() {
		c.Issuers = append(c.Issuers, r.digest())
	}
	c.TPM.Maker, c.TPM.Name, c.TPM.Version = r.text(), r.text(), r.text()
	c.Start.Agent, c.Start.Image = r.text(), r.text()
	for range r.count() {
		c.StatementDigests = append(c.StatementDigests, r.bytes())
	}
	c.AK1Public, c.AK2Public = r.bytes(), r.bytes()
	for range r.count() {
		c.PCRs = append(c.PCRs, int(r.number()))
	}
	c.AgentPCR, c.Channel = int(r.number()), r.text()
	if r.bad || len(r.in) != 0 {
		return Session{}, errText
	}
	return ses, nil
}
