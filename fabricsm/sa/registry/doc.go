// Package registry is what the registries of subnet administration have in common:
// the notices that they raise, the words of their events, who may register for whom,
// maps of which a reader keeps a snapshot at no cost, and queries that go over them in
// bounded steps.
package registry
