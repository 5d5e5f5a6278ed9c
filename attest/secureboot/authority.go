package secureboot

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"

	"portcullis/attest/peimage"
)

// Authority returns what firmware measures when it starts an image: the entry of db
// that the image was allowed by. It is an error when firmware would not start it.
func (v *Variables) Authority(image *peimage.Image) (Measurement, error) {
	db, err := parseLists(v.DB)
	if err != nil {
		return Measurement{}, fmt.Errorf("db: %w", err)
	}
	dbx, err := parseLists(v.DBX)
	if err != nil {
		return Measurement{}, fmt.Errorf("dbx: %w", err)
	}
	digest := image.Digest()
	if find(dbx, certSHA256, digest[:]) != nil {
		return Measurement{}, errors.New("dbx forbids the image by its digest")
	}
	var problems []error
	for i, der := range image.Signatures {
		e, err := allowed(db, dbx, der, digest)
		if err != nil {
			problems = append(problems, fmt.Errorf("signature %d: %w", i+1, err))
			continue
		}
		return measure("db", e.raw), nil
	}
	if e := find(db, certSHA256, digest[:]); e != nil {
		return measure("db", e.raw), nil
	}
	if len(image.Signatures) == 0 {
		return Measurement{}, errors.New("the image is not signed, and db does not have its digest: firmware would refuse it")
	}
	return Measurement{}, fmt.Errorf("firmware would refuse the image: %w", errors.Join(problems...))
}

// find looks for an entry by its kind and data.
func find(list []entry, kind GUID, data []byte) *entry {
	for i := range list {
		if list[i].kind == kind && bytes.Equal(list[i].data(), data) {
			return &list[i]
		}
	}
	return nil
}

// allowed finds the entry of db that is an anchor of a signature.
func allowed(db, dbx []entry, der []byte, digest [sha256.Size]byte) (*entry, error) {
	s, err := verifySignature(der, digest)
	if err != nil {
		return nil, err
	}
	for i := range db {
		if db[i].kind != certX509 {
			continue
		}
		anchor, err := x509.ParseCertificate(db[i].data())
		if err != nil {
			continue // one that nothing can be verified with
		}
		chain := s.chain(anchor)
		if chain == nil {
			continue
		}
		for _, c := range chain {
			if revoked(dbx, c) {
				return nil, fmt.Errorf("dbx forbids the certificate %q", c.Subject)
			}
		}
		return &db[i], nil
	}
	return nil, fmt.Errorf("no certificate of db issued that of its signer, %q", s.signer.Subject)
}

// revoked reports whether dbx has a certificate, or the digest of the signed part of it.
func revoked(dbx []entry, c *x509.Certificate) bool {
	if find(dbx, certX509, c.Raw) != nil {
		return true
	}
	digest := sha256.Sum256(c.RawTBSCertificate)
	for i := range dbx {
		if dbx[i].kind == certX509SHA256 && bytes.HasPrefix(dbx[i].data(), digest[:]) {
			return true
		}
	}
	return false
}
