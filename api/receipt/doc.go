// Package receipt has signed statements about the isolation of tenants: what was proven of which tables, read when, beside
// members, topology, key epochs and attestation results. A receipt is verified with a pinned key and no service.
//
// A receipt is a DSSE envelope around an in-toto Statement v1, signed with Ed25519; docs/reference/receipt.md has every field.
// [Sign] makes one, and [Verify] reads it. Each fact has the time at which it was so, and says how long after that it counts.
// [Verify] refuses a receipt with a fact that no longer counts, and derives the verdict from the pairs again. The package has
// no clock and does no I/O.
package receipt
