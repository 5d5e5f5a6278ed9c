// Package conf reads partition files in the grammar of OpenSM's
// partitions.conf and turns them into members for [partition].
//
// The grammar is OpenSM's; the laxness is not. Words may not be abbreviated,
// an unknown word is an error, and what this Subnet Manager cannot do as it is
// written is refused with file and line, never widened: limited members of
// partitions other than the default one, other full members of the default
// partition than the Subnet Manager, and switches as members.
//
// Multicast groups that a file names, and the IPoIB broadcast group of partitions with
// the flag ipoib, are there with or without members. The flag sl is the service level of
// the partition's paths, too.
//
// A file binds no GUID to a place: members are full members wherever their
// GUID is seen first. Whoever needs place protection needs an inventory.
package conf
