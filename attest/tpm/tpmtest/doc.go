// Package tpmtest runs real software TPMs (swtpm) with EK certificates from a
// throw-away TPM vendor, for tests and demonstrations.
//
// Debian and Ubuntu packages: swtpm, swtpm-tools.
package tpmtest
