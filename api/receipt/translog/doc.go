// Package translog has the forms of the transparency log of receipts, and verifies them: signed tree heads, proofs that a receipt
// is in a log, and proofs that one head continues another one.
//
// The log is a Merkle tree (RFC 6962). Each leaf is the digest of a receipt, and not the receipt. A head is a checkpoint in the form
// of C2SP tlog-checkpoint, signed by a key of receipts, and a proof of inclusion has the form of C2SP tlog-proof. Only one spelling
// of each is accepted, so that every byte of it counts. The package has no clock and does no I/O.
package translog
