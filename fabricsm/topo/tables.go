package topo

import "slices"

// A fabric that is not small gets room for many nodes and ports at once. The unused part is address space that the system
// never backs. To grow step by step would leave several times the memory that the fabric needs as garbage.
const (
	smallFabric = 1024 // nodes, or ports
	manyNodes   = 16 << 10
	manyPorts   = 128 << 10
)

// ExtendNodes returns a table by NodeID with at least n elements, and room for many if the fabric is not small. New
// elements are zero.
func ExtendNodes[T any](s []T, n int) []T { return extend(s, n, manyNodes) }

// ExtendPorts is ExtendNodes for a table by PortID.
func ExtendPorts[T any](s []T, n int) []T { return extend(s, n, manyPorts) }

func extend[T any](s []T, n, many int) []T {
	if n <= len(s) {
		return s
	}
	if n > cap(s) {
		room := max(n, cap(s)+cap(s)/2)
		if n > smallFabric {
			room = max(room, many)
		}
		s = slices.Grow(s, room-len(s))
	}
	return s[:n]
}
