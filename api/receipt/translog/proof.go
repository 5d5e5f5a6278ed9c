package translog

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/receipt"
)

const (
	// MaxProof bounds a proof of inclusion, in bytes.
	MaxProof = 8 << 10
	// Extension is how the name of a file with a proof ends.
	Extension = ".tlog-proof"

	version   = "c2sp.org/tlog-proof@v1"
	maxHashes = 64 // of a proof of inclusion: no path in a tree is longer
)

// Proof says that a receipt is in a log.
type Proof struct {
	Index  int64            // of the leaf, from 0
	Hashes tlog.RecordProof // from the leaf's sibling up
	Head   []byte           // signed
}

// Marshal returns the proof as its file has it.
func (p *Proof) Marshal() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\nindex %d\n", version, p.Index)
	for _, h := range p.Hashes {
		fmt.Fprintln(&out, h)
	}
	out.WriteByte('\n')
	out.Write(p.Head)
	return out.Bytes()
}

// ParseProof reads a proof, and verifies nothing. The error is ErrForm.
func ParseProof(data []byte) (*Proof, error) {
	text, head, ok := bytes.Cut(data, []byte("\n\n"))
	lines := strings.Split(string(text), "\n")
	if len(data) > MaxProof || !ok || len(lines) < 2 || len(lines) > 2+maxHashes || lines[0] != version {
		return nil, fmt.Errorf("%w: want the form %s, at most %d bytes", ErrForm, version, MaxProof)
	}
	p := &Proof{Head: head}
	index, ok := strings.CutPrefix(lines[1], "index ")
	n, err := number(index)
	if !ok || err != nil {
		return nil, fmt.Errorf("%w: %.80q in place of the index", ErrForm, lines[1])
	}
	p.Index = n
	for _, line := range lines[2:] {
		h, err := hash(line)
		if err != nil {
			return nil, fmt.Errorf("%w: hash %.80q", ErrForm, line)
		}
		p.Hashes = append(p.Hashes, h)
	}
	return p, nil
}

// Place is where a receipt was shown to be.
type Place struct {
	Head  Head
	Index int64
}

// Verify shows by a proof that a receipt is in the log of which one of the keys signed the head. It does not verify the receipt.
// Errors are ErrForm, ErrKey and ErrAbsent.
func Verify(data, proof []byte, keys []receipt.PublicKey) (*Place, error) {
	p, err := ParseProof(proof)
	if err != nil {
		return nil, err
	}
	h, err := OpenHead(p.Head, keys)
	if err != nil {
		return nil, err
	}
	if err := tlog.CheckRecord(p.Hashes, h.Size, h.Root, p.Index, DigestOf(data).Leaf()); err != nil {
		return nil, fmt.Errorf("%w: it says that leaf %d of %d is", ErrAbsent, p.Index, h.Size)
	}
	return &Place{*h, p.Index}, nil
}

// Continues refuses a later head unless the hashes prove that its log has everything that the earlier one had, in the same order.
// Both heads were opened. The error is ErrHistory.
func Continues(later, earlier *Head, hashes tlog.TreeProof) error {
	switch {
	case later.Origin != earlier.Origin:
		return fmt.Errorf("%w: the head of log %q is followed by one of log %q", ErrHistory, earlier.Origin, later.Origin)
	case later.Size < earlier.Size:
		return fmt.Errorf("%w: the log had %d receipts, and now has %d", ErrHistory, earlier.Size, later.Size)
	case later.Size == earlier.Size && later.Root != earlier.Root:
		return fmt.Errorf("%w: two heads of %d receipts are different", ErrHistory, earlier.Size)
	case later.Size == earlier.Size || earlier.Size == 0:
		return nil
	}
	if err := tlog.CheckTree(hashes, later.Size, later.Root, earlier.Size, earlier.Root); err != nil {
		return fmt.Errorf("%w: the log of %d receipts does not begin with the %d that it had: %w", ErrHistory, later.Size, earlier.Size, err)
	}
	return nil
}
