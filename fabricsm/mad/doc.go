// Package mad turns InfiniBand management datagrams into values and back.
//
// A MAD is an array of 256 bytes. The common header and the directed-route
// part of a subnet management packet (SMP) are views: methods that read and
// write fixed places of the block. An attribute is a struct whose tags are the
// specification's own table, bit offset and width:
//
//	type SMInfo struct {
//		GUID     ib.GUID  `mad:"0,64"`   // port GUID of the SM
//		SMKey    ib.SMKey `mad:"64,64"`
//		ActCount uint32   `mad:"128,32"`
//		Priority uint8    `mad:"160,4"`
//		SMState  ib.SMState `mad:"164,4"`
//	}
//
// Everything else comes from that one layout: [Decode], [Encode], [Dump],
// [Diff], [Fill] and the registry that [Explain] looks attributes up in. A
// layout is compiled once per type; after that decoding and encoding allocate
// nothing.
//
// Bit 0 is the most significant bit of byte 0 and all fields are big-endian.
// Reserved bits are written as zero and ignored when read.
package mad
