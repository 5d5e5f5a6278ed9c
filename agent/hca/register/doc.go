// Package register knows the firmware registers of NVIDIA adapters that this product reads and writes, and the commands
// that carry them: numbers, layouts and status codes, as bytes. It opens nothing; package hca and its implementations do
// that, and package hcasim is the other end.
//
// A layout is the table of the vendor's reference manual, in its own names: each field says in which dword of the register
// it lies and which bits of it it has. Everything is big-endian. Every pattern of bits decodes. The caller decides on the
// meaning of a value, and whether to trust it.
//
// Sources: the public register layouts of mstflint 4.36, Linux include/uapi/fwctl/fwctl.h and
// include/linux/mlx5/mlx5_ifc.h.
package register
