// Package pin keeps the public keys that a site believes firmware by: which key,
// what it may sign, and who put it there. A key that an image brings along is none
// of them until somebody pinned it.
//
// The file is YAML:
//
//	keys:
//	  - name: vendor production, RSA-4096
//	    uuid: c0ffee00-1122-3344-5566-778899aabbcc
//	    algorithm: rsa-4096-sha-512
//	    exponent: 65537
//	    modulus: 9c193459...
//	    fingerprint: sha256:...
//	    signs: [firmware]
//	    added_by: alice
//	    source: fw-image.bin
package pin
