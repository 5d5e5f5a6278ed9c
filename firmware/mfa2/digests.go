package mfa2

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
)

// compareDigests compares the two digests of a package: of the whole file, and of the part before the archive; in both
// cases with both digests as zeros.
func compareDigests(r io.ReaderAt, size int64, head []byte, g group) error {
	var digests []tlv
	for _, e := range g.extensions {
		if e.kind == tlvSHA256 {
			digests = append(digests, e)
		}
	}
	if len(digests) != 2 {
		return malformed("package: it has %d digests, want two", len(digests))
	}
	cleared := bytes.Clone(head)
	for _, d := range digests {
		if _, err := d.sized(sha256.Size); err != nil {
			return err
		}
		clear(cleared[d.at : d.at+sha256.Size])
	}
	whole, part := sha256.New(), sha256.Sum256(cleared)
	whole.Write(cleared)
	n := int64(len(head))
	if _, err := io.Copy(whole, io.NewSectionReader(r, n, size-n)); err != nil {
		return fmt.Errorf("read package: %w", err)
	}
	if !bytes.Equal(part[:], digests[1].body) {
		return malformed("package: the digest of its descriptors is wrong")
	}
	if !bytes.Equal(whole.Sum(nil), digests[0].body) {
		return malformed("package: the digest of the file is wrong: it was changed or is truncated")
	}
	return nil
}
