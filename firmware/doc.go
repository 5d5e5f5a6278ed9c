// Package firmware will open HCA firmware images and say who an image is,
// whether it is intact, and whether a key pinned by the site signed it.
//
// It holds nothing yet: today the service compares the firmware version that a
// host reports with a minimum per board (package attest), which proves only
// what the measured provisioning image saw. Nothing claims more.
package firmware
