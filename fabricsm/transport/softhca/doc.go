// Package softhca speaks with the kernel module softhca, an InfiniBand adapter without hardware for tests. It carries
// messages between the adapter and the program that serves it as its fabric and its firmware. They cross the device file
// /dev/softhca, of which one open is one adapter, or a stream such as a unix socket, behind which a relay has the device
// file.
//
// A message has a head of 96 bytes and a payload of 4096 at most. Its fields are little-endian; MADs, global route headers
// and GUIDs are as on the link. The module's softhca.h has the same definitions.
package softhca
