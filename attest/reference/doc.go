// Package reference decides which measured boots of a class of hosts are trusted: reference values of TPM registers 0 to 7,
// and of others that a site quotes.
//
// A Set holds, for each register, either whole values or the digests of events in their order. Differences between machines
// of one model (boot options, settings) may be ignored, but nothing may be ignored in the registers that hold code and
// keys. Sets are learned from a boot, approved by a person, and end at a date. Several may be valid at once, for example
// while new firmware is rolled out. With none, Judge refuses. A waiver is a Set that takes any boot whose log replays: it
// has an owner and always ends.
//
// The given log must replay to the quoted values; eventlog.Log.Match checks this.
package reference
