// Package registry holds the common parts of the registries of subnet administration: the notices that they raise, the
// words of their events, and the rules for who may register for another port. It has maps with free snapshots for readers,
// and queries that go over them in bounded steps.
package registry
