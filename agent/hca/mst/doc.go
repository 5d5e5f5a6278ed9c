// Package mst runs the vendor's tools where the kernel has no fwctl: mstflint, mstconfig and mstreg, as Debian and upstream
// call them, or flint, mlxconfig and mlxreg, as NVIDIA's package does. It accesses registers (mstreg in raw mode), and
// reads the output of "query full" and the JSON of mstconfig.
//
// The tools are third-party programs. They run with an environment of three variables and without a terminal. After a
// deadline their whole process group is killed. Their output is bounded and may hold only text. Exit code 0 proves nothing;
// the caller must read back the values that it wrote.
//
// The tools bypass the kernel and use PCI configuration space, so they see no adapter at all if the kernel is locked down.
// They take keys as arguments only, where every process of the host can read them: such commands are refused unless the
// site's policy allows that.
//
// Forms and messages are those of mstflint 4.36 (upstream) and 4.21 (Debian 12).
package mst
