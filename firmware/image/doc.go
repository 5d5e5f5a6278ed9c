// Package image reads firmware images of ConnectX and BlueField adapters and of the switches of the same family: layouts
// FS3, FS4 and FS5, as update component, as whole image and inside a raw dump of a flash.
//
// Open finds structure and identity and refuses contradictions. Check compares checksums. Digest256 and Digest512 are the
// digests that a signature of the vendor covers. This package does not decide which keys are trusted: package firmware
// does.
//
// The layouts are those that mstflint reads. Everything in an image is big-endian. Each read is bounded by the size that
// was passed to Open.
package image
