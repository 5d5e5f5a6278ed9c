// Package register keeps which hosts there are: it imports and exports inventory, stages rows that need two persons,
// denies EKs that were replaced, and moves cables of switches that were. It knows no HTTP, and decides about no host: package
// admission settles those that it changed.
package register
