// Package pin keeps the public keys by which a site trusts firmware: which key, what it may sign, and who added it. A key
// that an image brings along is not one of them until an operator pins it.
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
