// Package signature verifies signatures of rack manifests against the keys that a site has pinned.
//
// A signature is detached, over the bytes of the manifest as they are: Ed25519 (RFC 8032), or ECDSA over P-256 with SHA-256
// in ASN.1 DER (FIPS 186-5, section 6). openssl makes both:
//
//	openssl pkeyutl -sign -rawin -inkey KEY.pem -in rack12.json -out rack12.json.sig               # Ed25519
//	openssl dgst -sha256 -sign KEY.pem -out rack12.json.sig rack12.json                            # P-256
//
// The file of pinned keys is YAML. A key may be bound to racks; without racks it signs manifests of all:
//
//	keys:
//	  - name: integrator A, 2026
//	    key: |
//	      -----BEGIN PUBLIC KEY-----
//	      ...
//	    fingerprint: sha256:...    # of the key as DER; optional
//	    racks: [r12, r13]
//	    added_by: alice
package signature
