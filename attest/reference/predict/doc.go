// Package predict computes reference values of a boot that never was: of a unified
// kernel image that is to be booted, on machines of which a boot of another image
// or a set of reference values is known, or their Secure Boot variables.
//
// What is modelled is what was found on real firmware: systemd's stub measures
// the image's sections into PCR 11 and starts the kernel in it, which firmware
// measures into PCR 4 behind the image, but not with Secure Boot; Linux measures
// command line and initrd into PCR 9. Images with another stub or kernel are refused, not guessed.
package predict
