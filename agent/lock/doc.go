// Package lock brings an adapter to the settings of a profile, locks it with a
// key that the service gave, and proves that it is locked.
//
// The sequence (nvconfig-lock.md section 8) can be broken off anywhere and begun
// again: each step begins by reading, and does what is missing. Success is what
// was read back and what the adapter refused, never that a command went well.
//
// The key is in memory alone, and in no message. What an adapter does not tell,
// or tells otherwise than asked, ends the sequence with a reason of its own.
package lock
