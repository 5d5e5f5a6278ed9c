// Package receipts issues receipts: signed statements about the isolation of tenants (package receipt), with keys of the service,
// which package keyring keeps, and publishes their public halves.
//
// What a receipt says is read for it, or was read a short time ago. Nothing in it is taken from a client.
package receipts
