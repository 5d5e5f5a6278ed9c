// Package receiptlog keeps the transparency log of receipts in the store: a Merkle tree of the digests of all receipts that were
// issued. Package translog has its forms, and verifies them.
//
// A leaf takes part in the transaction that records the receipt before it is returned, and each change of the tree rests on the
// one before it. So all instances over one store have one log, and nothing is signed that is not stored. What is signed follows
// from the store alone: a head that was signed needs no record.
//
// A log has a name of its own. A state that was restored, or found to be rolled back, lacks receipts that were issued: its log is
// removed (review.Seen), and the next receipt begins another one, under another name. An instance that saw a log longer, or with
// other receipts, than the store has it signs no head of it.
package receiptlog
