// Package mfa2 reads packages of firmware images (MFA2): which boards a package
// has images for, whether it is whole, and the images themselves, one after the
// other.
//
// A package is untrusted: its sizes are bounded by the constants here, its digests
// are compared before anything is unpacked, and one image at a time is in memory.
package mfa2
