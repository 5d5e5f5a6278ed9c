// Package backupfile opens backups that users name, with the identities and anchors that they name beside them.
package backupfile

import (
	"errors"
	"fmt"
	"os"

	"filippo.io/age"

	"portcullis/api/audit/chain"
	"portcullis/api/backup/archive"
	"portcullis/fabricsm/vault/escrow"
)

// IdentityHint says what a file of identities consists of.
const IdentityHint = `want lines "AGE-SECRET-KEY-1...", as age-keygen writes them`

// Identities reads age identities out of text, and clears it. name is for errors; see IdentityHint.
func Identities(name string, text []byte) ([]age.Identity, error) {
	defer clear(text)
	ids, err := escrow.Identities(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ids, nil
}

// File is a backup that is open.
type File struct {
	*os.File
	Size       int64
	Identities []age.Identity // that open it
	Anchors    []chain.Anchor // by Seq
}

// Open opens a backup. Verify needs identities, and compares its audit log with what is in files of anchors.
func Open(name string, ids []age.Identity, anchors []string) (*File, error) {
	known, err := chain.ReadAnchorFiles(anchors)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f, info.Size(), ids, known}, nil
}

// Digest compares the digest of the backup with its contents, and returns it with the header.
func (f *File) Digest() (archive.Header, string, error) {
	h, digest, err := archive.Digest(f, f.Size)
	if err != nil {
		return archive.Header{}, "", f.named(err)
	}
	return h, digest, nil
}

// Verify reads the backup whole, and returns how many records it has.
func (f *File) Verify() (records int64, err error) {
	if _, records, err = archive.Read(f, f.Size, f.Identities, f.Anchors, func(archive.Item) error { return nil }); err != nil {
		return records, f.named(err)
	}
	return records, nil
}

func (f *File) named(err error) error { return fmt.Errorf("%s: %w", f.Name(), err) }
