package api

import (
	"net"
	"net/netip"

	"portcullis/api/limit"
)

// sourceOf returns the key that limits are kept for, for an address with port. Anything else, such as a Unix socket, is the
// zero Addr.
func sourceOf(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return limit.Source(ap.Addr())
}

// hostOf returns the address without its port, as the audit log needs it.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}
