// Package outsiders refuses a new membership of a partition whose packets pass at a port that is no member, by what the newest examination of
// all tenants found. The instance that leads records it, and every instance asks in the transaction that would commit the change.
package outsiders
