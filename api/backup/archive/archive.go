// Package archive is the file of a backup: all records of a store as of one revision, encrypted to age recipients.
//
// The first line is a Header in clear, as JSON. After it comes a file of age (age-encryption.org). Inside that, in gzip,
// are the same Header, a JSON object for each record in key order, and the number of records. The last line of the file has
// the SHA-256 of all before it, so that damage shows without an identity. It proves no origin: the recipients are public,
// and any holder of them can make another file. The proof of origin is the audit log inside, with heads of it that were
// noted elsewhere.
package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"filippo.io/age"

	"portcullis/api/audit/chain"
)

// Version numbers the format of the file.
const Version = 1

const (
	maxHeader = 16 << 10 // bytes of the first line
	maxRecord = 32 << 20 // bytes of a record's line; etcd takes 1.5 MiB for a request by default

	trailerStart = "\nsha256 "
	trailerSize  = len(trailerStart) + 2*sha256.Size + 1
)

// Header says what a backup is of. It stands in clear.
type Header struct {
	Version    int        `json:"portcullis_backup"`
	Origin     string     `json:"origin"` // hash of the first entry of the audit log: which installation
	Time       time.Time  `json:"time"`
	Revision   int64      `json:"revision"`     // of the store
	Audit      chain.Head `json:"audit"`        // end of the audit log
	State      int        `json:"state_format"` // what the records mean; see package etcd
	Program    string     `json:"program"`      // version that made it
	Recipients []string   `json:"recipients"`   // public keys
}

// Item is one record.
type Item struct {
	Key   string `json:"k"`
	Value []byte `json:"v"`
}

// end is the last line inside.
type end struct {
	Records int64 `json:"records"`
}

// line is a line inside: an Item, or the end.
type line struct {
	Item
	Records *int64 `json:"records,omitempty"`
}

// Writer writes a backup.
type Writer struct {
	out     io.Writer // with the sum
	sum     hash.Hash
	sealed  io.WriteCloser
	packed  *gzip.Writer
	enc     *json.Encoder
	records int64
}

// NewWriter begins a backup. h.Version and h.Recipients are filled in.
func NewWriter(w io.Writer, h Header, to ...*age.X25519Recipient) (*Writer, error) {
	if len(to) == 0 {
		return nil, errors.New("backup: there is no recipient: no identity could open it")
	}
	h.Version, h.Recipients = Version, nil
	recipients := make([]age.Recipient, len(to))
	for i, r := range to {
		recipients[i] = r
		h.Recipients = append(h.Recipients, r.String())
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if len(head) >= maxHeader {
		return nil, fmt.Errorf("backup: %d recipients are more than its header has room for", len(to))
	}
	b := &Writer{sum: sha256.New()}
	b.out = io.MultiWriter(w, b.sum)
	if _, err = b.out.Write(append(head, '\n')); err == nil {
		b.sealed, err = age.Encrypt(b.out, recipients...)
	}
	if err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	b.packed = gzip.NewWriter(b.sealed)
	b.enc = json.NewEncoder(b.packed)
	return b, b.write(h)
}

func (b *Writer) write(v any) error {
	if err := b.enc.Encode(v); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// Add writes a record. They come in key order.
func (b *Writer) Add(i Item) error {
	b.records++
	return b.write(i)
}

// Close ends the backup, and returns how many records it has and the SHA-256 that its last line shows, in
// hexadecimal. It does not close the writer below.
func (b *Writer) Close() (records int64, digest string, err error) {
	err = b.write(end{b.records})
	if err = errors.Join(err, b.packed.Close(), b.sealed.Close()); err != nil {
		return 0, "", fmt.Errorf("write the backup: %w", err)
	}
	digest = hex.EncodeToString(b.sum.Sum(nil))
	if _, err = io.WriteString(b.out, trailerStart+digest+"\n"); err != nil {
		return 0, "", fmt.Errorf("write the backup: %w", err)
	}
	return b.records, digest, nil
}

// ReadHeader returns the header of a file, unverified.
func ReadHeader(r io.Reader) (Header, error) {
	h, _, err := header(r)
	return h, err
}

var errNoBackup = errors.New("not a backup of Portcullis: its first line is no header")

func header(r io.Reader) (h Header, size int64, err error) {
	text, err := bufio.NewReaderSize(io.LimitReader(r, maxHeader), maxHeader).ReadSlice('\n')
	if err != nil || json.Unmarshal(text, &h) != nil || h.Version < 1 {
		return Header{}, 0, errNoBackup
	}
	if h.Version > Version {
		return h, 0, fmt.Errorf("the backup has format %d, and this program reads formats up to %d: install the version that made it, %.40q", h.Version, Version, h.Program)
	}
	return h, int64(len(text)), nil
}

// Digest verifies that a file is whole, which needs no identity, and returns its header and its SHA-256 as the
// last line shows it, in hexadecimal.
func Digest(r io.ReaderAt, size int64) (Header, string, error) {
	h, _, err := header(io.NewSectionReader(r, 0, size))
	if err != nil {
		return h, "", err
	}
	body := size - int64(trailerSize)
	if body < 0 {
		return h, "", errCut
	}
	trailer := make([]byte, trailerSize)
	if _, err := r.ReadAt(trailer, body); err != nil && err != io.EOF {
		return h, "", fmt.Errorf("read the backup: %w", err)
	}
	said, ok := bytes.CutPrefix(trailer, []byte(trailerStart))
	if !ok {
		return h, "", errCut
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r, 0, body)); err != nil {
		return h, "", fmt.Errorf("read the backup: %w", err)
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if digest+"\n" != string(said) {
		return h, digest, errors.New("the backup was damaged: its digest is not the one in its last line: take another copy")
	}
	return h, digest, nil
}

var errCut = errors.New("the backup was cut short: its last line is no digest: take another copy")

// Read verifies a file whole and calls add with each record, in key order. It verifies the digest before the first; the
// count of records and the audit log among them are verified when all were given: with an error
// what was added is not to be used. anchors, by Seq, are compared with the audit log.
func Read(r io.ReaderAt, size int64, ids []age.Identity, anchors []chain.Anchor, add func(Item) error) (h Header, records int64, err error) {
	if h, _, err = Digest(r, size); err != nil {
		return h, 0, err
	}
	_, from, err := header(io.NewSectionReader(r, 0, size))
	if err != nil {
		return h, 0, err
	}
	opened, err := age.Decrypt(io.NewSectionReader(r, from, size-int64(trailerSize)-from), ids...)
	if noMatch, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return h, 0, fmt.Errorf("the backup is for none of the %d identities given, but for %q", len(noMatch.Errors), h.Recipients)
	}
	if err != nil {
		return h, 0, fmt.Errorf("the backup does not open: %w", err)
	}
	unpacked, err := gzip.NewReader(opened)
	if err != nil {
		return h, 0, fmt.Errorf("the backup is not of one piece: %w", err)
	}
	b := reading{header: h, log: Log{check: chain.Check{Anchors: anchors}}, add: add}
	if err := b.all(unpacked); err != nil {
		return h, b.records, err
	}
	return h, b.records, b.log.End(h.Audit)
}

// reading is the state of Read.
type reading struct {
	header  Header
	log     Log
	add     func(Item) error
	records int64
	last    string
	ended   bool
}

func (b *reading) all(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxRecord)
	for n := 0; lines.Scan(); n++ {
		if b.ended {
			return errors.New("the backup is not of one piece: something follows its end")
		}
		if n == 0 {
			if err := b.sameHeader(lines.Bytes()); err != nil {
				return err
			}
			continue
		}
		if err := b.line(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the backup was changed or cut short, or a record is longer than %d bytes: %w", maxRecord, err)
	}
	if !b.ended {
		return errors.New("the backup is not of one piece: its end is missing")
	}
	return nil
}

// sameHeader compares the header inside, which only the maker of the file could write, with the one in clear.
func (b *reading) sameHeader(text []byte) error {
	clear, err := json.Marshal(b.header)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	var inside Header
	if json.Unmarshal(text, &inside) != nil {
		return errors.New("the backup is not of one piece: it has no header inside")
	}
	if again, err := json.Marshal(inside); err != nil || !bytes.Equal(clear, again) {
		return errors.New("the header in the backup's first line is not the one inside: the line was changed")
	}
	return nil
}

func (b *reading) line(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("the backup is not of one piece: record %d: %w", b.records+1, err)
	}
	if l.Records != nil {
		if *l.Records != b.records {
			return fmt.Errorf("the backup has %d records and says that it has %d", b.records, *l.Records)
		}
		b.ended = true
		return nil
	}
	if l.Key <= b.last {
		return fmt.Errorf("the backup is not of one piece: record %q follows %q", l.Key, b.last)
	}
	b.last = l.Key
	b.records++
	if err := b.log.Add(&l.Item); err != nil {
		return err
	}
	return b.add(l.Item)
}
