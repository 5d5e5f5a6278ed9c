// Package attestation verifies what hosts say of themselves: sessions and their challenges, evidence, seals, and whether
// evidence that was accepted still meets policy. It records what a host has shown, and answers it and relying parties. It
// knows no HTTP, and decides about no membership: that is package admission, which it has settle each host that it changed.
//
// Sessions are sealed tokens (package session). Evidence that shows GUIDs of another host has both held until an operator
// has looked. Evidence that lacks nothing but locked adapters earns a ticket for orders to lock them (package locks).
package attestation
