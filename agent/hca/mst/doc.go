// Package mst runs the vendor's tools where the kernel has no fwctl: mstflint,
// mstconfig and mstreg, as Debian and upstream call them, or flint, mlxconfig
// and mlxreg, as NVIDIA's package does. It carries register accesses (mstreg in
// raw mode), and reads what "query full" and the JSON of mstconfig say.
//
// The tools are programs of somebody else: they run with an environment of three
// variables, without a terminal, with a deadline after which their whole process
// group is killed, and with bounded output that may hold only text. Exit code 0
// proves nothing; what was written is for the caller to read back.
//
// The tools go past the kernel to PCI configuration space, so a kernel that is
// locked down blinds them, for all adapters at once. They take keys as arguments
// only, where every process of the host can read them: such commands are refused
// unless the site's policy allows that.
//
// Forms and messages are those of mstflint 4.36 (upstream) and 4.21 (Debian 12).
package mst
