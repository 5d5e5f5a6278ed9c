// Package reference says which measured boots of a class of hosts are trusted:
// reference values of TPM registers 0 to 7, and of others that a site quotes.
//
// A Set holds, for each register, either whole values or the digests of events
// in their order. What machines of one model differ in (boot options, settings)
// is ignorable, but in the registers that hold code and keys nothing is. Sets
// are learned from a boot, approved by a person, and end at a date; several may
// be valid at once, as while new firmware is rolled out. With none, Judge
// refuses. A waiver is a Set that takes any boot whose log replays: it has an
// owner and always ends.
//
// The log given must replay to the quoted values; eventlog.Log.Match says so.
package reference
