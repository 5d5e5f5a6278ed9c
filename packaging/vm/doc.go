// Package vm boots virtual machines and tests the product on a real Linux kernel,
// a TPM 2.0, UEFI firmware and systemd. "make vm" runs it; the build tag is vm.
//
// Each test file of this package is one lab. A lab boots one or more machines
// (machine/) with Debian's cloud kernel (kernel/) from disks and initramfs images that
// disk/ makes. Inside the machine runs a Go test program of inside/, whose lines
// on the second serial port are the test protocol: the lab reports each of its tests
// as a subtest, and fails on a missing one, on time-out, and on any warning of
// the kernel.
//
// The machines are emulated (TCG): nothing here depends on /dev/kvm. They have two
// CPUs always, since some defects need two. The InfiniBand adapter in them is
// softhca/, a kernel module whose fabric is a user process.
package vm
