// Package registry is what the registries of subnet administration have in common:
// the notices that they raise, who may register for whom, and maps of which a reader
// keeps a snapshot at no cost.
package registry
