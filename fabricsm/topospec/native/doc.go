// Package native reads and writes our own form of a topology revision, in JSON or YAML.
//
//	{
//	"format": "portcullis-topospec/1",
//	"revision": 42,
//	"fabric": "rail-a",
//	"policy": {"mode": "observe"},
//	"devices": [
//	{"guid": "0x98039b0300867bba", "kind": "switch", "rack": "12", "u": 20, "name": "leaf-1", "ports": 64}
//	],
//	"links": [
//	{"a": "0x98039b0300867bba/1", "b": "0xf452140300280040/1", "class": "host"}
//	],
//	"end": {"devices": 1, "links": 1, "digest": "sha256:..."}
//	}
//
// YAML has the same keys. The form ends with the numbers of devices and links and with the digest of the content, so that a
// file cut anywhere, or edited and not sealed again, is rejected. A draft may leave the end out.
//
// Reading is strict and bounded: unknown and repeated keys, anchors, wrong types, and text that cannot be shown are errors
// with their line.
package native
