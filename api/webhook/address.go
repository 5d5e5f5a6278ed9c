package webhook

import (
	"fmt"
	"net/netip"
	"slices"
)

// Addresses says to which addresses requests may go. The zero Addresses refuses those that no server of another machine has, and those
// at which clouds serve credentials of the machine.
type Addresses struct {
	Only  []netip.Prefix // no others; empty: all that are not refused
	Allow []netip.Prefix // also where they would be refused
}

// special are ranges that are refused beside loopback, link-local, multicast and unspecified addresses.
var special = []struct {
	prefix netip.Prefix
	name   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "of this network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a protocol's own"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast"},
	{netip.MustParsePrefix("100.100.100.200/32"), "of a cloud's metadata service"},
	{netip.MustParsePrefix("168.63.129.16/32"), "of a cloud's metadata service"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "of a cloud's metadata service"},
	{netip.MustParsePrefix("fd20:ce::/32"), "of a cloud's metadata service"},
	{netip.MustParsePrefix("::/96"), "an IPv4-compatible one"},
	{netip.MustParsePrefix("fec0::/10"), "site-local, which is deprecated"},
}

// Prefixes whose addresses have an IPv4 address in them, to which a gateway sends on.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// Check returns an error if no request may go to an address.
func (p *Addresses) Check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	holds := func(n netip.Prefix) bool { return n.Contains(a) }
	switch what := refused(a); {
	case slices.ContainsFunc(p.Allow, holds):
		return nil
	case what != "":
		return fmt.Errorf("the address %s is %s: name a server of another machine, or allow the address (webhooks.allow)", a, what)
	case len(p.Only) > 0 && !slices.ContainsFunc(p.Only, holds):
		return fmt.Errorf("the address %s is in none of the networks that are allowed (webhooks.only)", a)
	}
	return nil
}

// refused returns what an address is that is refused, "" for another one.
func refused(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "none"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.name
		}
	}
	b := a.As16()
	for _, in := range []struct {
		prefix netip.Prefix
		at     int
	}{{nat64, 12}, {sixToFour, 2}} {
		if !in.prefix.Contains(a) {
			continue
		}
		inner := netip.AddrFrom4([4]byte(b[in.at : in.at+4]))
		if what := refused(inner); what != "" {
			return what + " (" + inner.String() + ")"
		}
	}
	return ""
}
