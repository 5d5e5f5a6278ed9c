// Package conf reads partition files in the grammar of OpenSM's partitions.conf and turns them into members for
// [partition].
//
// The grammar is OpenSM's, but stricter. Words may not be abbreviated, and an unknown word is an error. Rules that this
// Subnet Manager cannot apply as written are rejected with file and line, never widened: limited members of partitions
// other than the default one, full members of the default partition other than the Subnet Manager, and switches as members.
//
// Multicast groups that a file names, and the IPoIB broadcast group of partitions with the flag ipoib, exist with or
// without members. The flag sl is the service level of the partition's paths, too.
//
// A file binds no GUID to a place: members are full members wherever their GUID is seen first. An operator who needs place
// protection needs an inventory.
package conf
