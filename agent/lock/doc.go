// Package lock applies the settings of a profile to an adapter, locks it with a key that the service provided, and proves
// that it is locked.
//
// The sequence (nvconfig-lock.md section 8) can be interrupted anywhere and started again: each step first reads the state,
// and does what is missing. Success is proved by the values that were read back and by the commands that the adapter
// refused, never by a command that succeeded.
//
// The key is in memory alone, and in no message. A value that an adapter does not report, or that differs from the request,
// ends the sequence with a reason of its own.
package lock
