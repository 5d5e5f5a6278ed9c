// Package sysfs reads what the kernel's file trees say of a host's adapters: PCI functions, their vital product data, RDMA
// devices and their ports, and the device nodes behind which drivers take commands and MADs.
//
// It needs no privilege beyond reading. The trees are hostile input: files are read with a bound, links cannot leave the
// tree, and every problem is reported with the file it is in. Sysfs shows the driver's view, which root can change. It is
// one source among others.
package sysfs
