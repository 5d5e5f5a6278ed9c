package imagetest

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
)

// Digest writes the bare SHA-256 into an image of Build, as "mstflint sign" does
// without a key.
func Digest(b []byte) {
	d := sha256.Sum256(Covered(b, 0xA0))
	_, data := Find(b, 0xA0)
	copy(data[0x20:], d[:])
	Mend(b, 0xA0)
}

// Sign4096 signs an image of Build. This signature comes first: the other covers it.
func Sign4096(b []byte, k *rsa.PrivateKey, uuid [16]byte) {
	d := sha512.Sum512(Covered(b, 0xA0, 0xA3))
	put(b, 0xA3, k, uuid, crypto.SHA512, d[:])
}

// Sign2048 signs an image of Build.
func Sign2048(b []byte, k *rsa.PrivateKey, uuid [16]byte) {
	d := sha256.Sum256(Covered(b, 0xA0))
	put(b, 0xA0, k, uuid, crypto.SHA256, d[:])
}

func put(b []byte, kind byte, k *rsa.PrivateKey, uuid [16]byte, hash crypto.Hash, digest []byte) {
	signature, err := rsa.SignPKCS1v15(nil, k, hash, digest)
	if err != nil {
		panic(err)
	}
	_, data := Find(b, kind)
	copy(data[0x10:], uuid[:])
	copy(data[0x20:], signature)
	Mend(b, kind)
}

// Covered is what a signature covers, where there is no table of hashes: it cuts and masks a copy of the whole image.
func Covered(b []byte, kinds ...byte) []byte {
	c := bytes.Clone(b[start(b):])
	old := isFS3(b)
	blank := func(p []byte) { copy(p, bytes.Repeat([]byte{0xFF}, len(p))) }
	blank(c[:16])
	end, masked := 0, [][]byte{}
	for e := c[bytes.Index(c, append([]byte("ITOC"), tocRest...))+32:]; e[0] != 0xFF; e = e[32:] {
		from := int(be.Uint32(e[0x14:]) & 0x7FFFFFFC)
		to := from + int(be.Uint32(e)&0xFFFFFC)
		switch device := old && e[0x19]&2 != 0; {
		case device:
			masked = append(masked, e[:32])
			continue
		case bytes.IndexByte(kinds, e[0]) >= 0:
			masked = append(masked, e[:32], c[from:to])
		}
		end = max(end, to)
	}
	for _, m := range masked {
		blank(m)
	}
	return c[:end]
}
