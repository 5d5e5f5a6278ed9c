// Package predict computes reference values of a boot that has not happened yet. It is the boot of a unified kernel image,
// on machines for which a boot of another image, a set of reference values, or the Secure Boot variables are known.
//
// The model follows real firmware. systemd's stub measures the image's sections into PCR 11 and starts the kernel in it.
// Firmware measures that kernel into PCR 4 after the image, but not with Secure Boot. Linux measures command line and
// initrd into PCR 9. Images with another stub or kernel are refused, not guessed.
package predict
