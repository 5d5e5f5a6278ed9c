// Package image reads firmware images of ConnectX and BlueField adapters and of
// the switches of the same family: layouts FS3, FS4 and FS5, as update component,
// as whole image and inside a raw dump of a flash.
//
// Open finds structure and identity and refuses what contradicts itself. Check
// compares checksums. Digest256 and Digest512 are what a signature of the vendor
// covers. Nothing here decides whom to believe: that is package firmware's.
//
// The layouts are those that mstflint reads. Everything in an image is
// big-endian. Each read is bounded by the size that Open was told.
package image
