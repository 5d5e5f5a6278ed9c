// Package firmware reports the identity of the images in a firmware file, whether they are intact, and whether a key that
// the site pinned signed them.
//
// A file is an image, a raw dump of a flash, or a package of images (MFA2). Images iterates over it, Describe returns an
// image's own claims, Verify judges.
//
// # Verdicts
//
//	valid           intact, and every signature in it is right under a pinned key
//	not signed      intact, and it has no signature
//	invalid         damaged, changed, contradicting itself, or signed by a key
//	                that is not pinned
//	not verifiable  encrypted, of a layout that is not known, or no key is pinned
//
// Only valid is good. It says that a holder of the private key made this image; it does not say that a device runs it.
// Whether the site wants it is a separate question, which the policy answers.
//
// # What is proven
//
// Digests are proven on some thousand images of the vendor, RSA on images signed by mstflint with keys of our own. No image
// signed by the vendor was available. Images of ConnectX-7 and later with a table of hashes are read as mstflint reads
// them, without one to compare.
package firmware
