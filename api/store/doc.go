// Package store keeps the service's records: typed collections, transactions that commit only if nothing they read has
// changed, watches that resume, and leases.
//
// A Backend holds the records. Services use that of package etcd; package memory has one for drills, which passes the same
// suite.
//
// How to use it. A package declares each of its collections once:
//
//	var tenants = store.NewCollection[Tenant]("tenants", 1)
//
// and changes records inside Update, whose function may run several times and must therefore have no other effect:
//
//	_, err := s.Update(ctx, func(tx *store.Tx) error {
//		t, err := tenants.Get(ctx, tx, "acme")
//		...
//		return tenants.Put(tx, "acme", t.Value)
//	})
//
// Every record read through the Tx becomes a condition of the commit: the commit takes place at one revision, all or
// nothing, as if there were no other writers. Reads through a Snapshot or the Store add no condition.
//
// To ask the backend for each record takes most of the time of a transaction. So a Store remembers single records that transactions
// read or wrote, at most 64 MiB of them, and the first run of a transaction gets these. The conditions of the commit say whether they are
// current. If one is not, the function runs again with records of the backend. View does the same for functions that only read.
//
// An error from Update other than the function's own, ErrConflict, ErrFull and ErrLeaseEnded leaves open whether the commit
// landed: read again before deciding anything.
package store
