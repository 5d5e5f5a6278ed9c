package mfa2

import (
	"bytes"
	"fmt"
	"io"

	"github.com/therootcompany/xz"
)

// maxDictionary bounds what the archive may have kept in memory for itself: real
// packages want 64 MiB.
const maxDictionary = 64 << 20

// Each unpacks the images one after the other, as they lie in the archive, and
// calls f with each. The bytes are valid until f returns. An error of f ends it.
func (p *Package) Each(f func(c Component, image []byte) error) error {
	archive, err := xz.NewReader(io.NewSectionReader(p.r, p.archive, p.packed), maxDictionary)
	if err != nil {
		return unpacking("archive", err)
	}
	archive.Multistream(false) // what old packages have behind the stream is not looked at
	var buf bytes.Buffer
	at := int64(0)
	for _, c := range p.inOrder() {
		if _, err := io.CopyN(io.Discard, archive, c.offset-at); err != nil {
			return unpacking(fmt.Sprintf("archive before component %d", c.Index), err)
		}
		if err := unpack(&buf, archive, c); err != nil {
			return err
		}
		if err := f(c, buf.Bytes()); err != nil {
			return err
		}
		at = c.offset + componentPrefix + c.Size
	}
	return nil
}

// unpack reads one image behind its magic. The buffer grows with the bytes that are really there, not with the size in the
// package.
func unpack(buf *bytes.Buffer, archive io.Reader, c Component) error {
	what := fmt.Sprintf("component %d", c.Index)
	var head [componentPrefix]byte
	if _, err := io.ReadFull(archive, head[:]); err != nil {
		return unpacking(what, err)
	}
	if string(head[:]) != componentMagic {
		return malformed("%s: it does not begin with %q", what, componentMagic)
	}
	buf.Reset()
	if _, err := io.CopyN(buf, archive, c.Size); err != nil {
		return unpacking(what, err)
	}
	return nil
}
