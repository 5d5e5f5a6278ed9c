// Package hostrecord holds what the service keeps of a host beside its inventory: its assignment, its grants, and which
// evidence of it counts. Package admission decides by it, package attestation writes what hosts have shown. The package
// decides nothing.
package hostrecord
