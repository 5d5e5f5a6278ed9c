// Package eventlog reads the log of a measured boot: TCG PC Client Platform Firmware Profile, crypto-agile format ("Spec ID
// Event03"), as Linux shows it in /sys/kernel/security/tpm0/binary_bios_measurements.
//
// A log is a claim of the host. TPM registers authenticate only the digest of an event, and the order within its register;
// neither its type nor its data nor its order among other registers. So nothing here decides on types and data, except
// EV_NO_ACTION, which is never measured. Types and data only explain.
//
// Reading is strict: one log, all of it, with SHA-256 digests of every event, or an error. Log.Match reports whether it is
// the log of this boot.
package eventlog
