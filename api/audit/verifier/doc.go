// Package verifier verifies the audit log while the service runs: when it starts, and every hour then.
//
// It reads some entries at a time and rests in between, because the same process is the Subnet Manager. Where several
// instances share a store they take turns: each verifies what it reads itself, one at a time.
//
// A log that is not whole, or is not the one that was verified before, is an event. It verifies what the chain proves
// (package audit). An attacker that rewrites all of it, and what is noted of it in the store, is noticed by package anchor
// alone.
package verifier
