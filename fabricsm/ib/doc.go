// Package ib holds the values of InfiniBand management: GUIDs, LIDs, GIDs, P_Keys, keys, port numbers, service levels, link
// speeds.
//
// Each is a comparable value with the standard's own name. Parse functions take exactly one spelling family (hexadecimal
// with 0x, or decimal where operators write decimal), String returns the canonical one, and the text marshalling methods
// make the types usable in JSON, YAML and flags.
//
// The zero value of every type means "none" unless its comment says more. The package imports nothing of ours; every other
// package may import it.
package ib
