package trust

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
)

// As returns the GUID of the requester: the GUID in the GRH if the port has it, otherwise the port's own. spoofed is true
// if the GRH has a GUID of another port, a foreign subnet or no GUID. (GUID 0 is no alias: the book has it for unused
// entries.)
func As(e *portindex.EndPort, grh bool, sgid ib.GID, subnet ib.Prefix) (guid ib.GUID, spoofed bool) {
	if !grh {
		return e.GUID, false
	}
	g := sgid.GUID()
	ours := sgid.Prefix() == ib.DefaultPrefix || sgid.Prefix() == subnet
	if ours && g != 0 && (g == e.GUID || slices.Contains(e.Aliases, g)) {
		return g, false
	}
	return e.GUID, true
}

// ActsFor judges a request by which a port registers or takes back something in the name
// of a GUID: MCMemberRecord.PortGID, ServiceRecord.ServiceGID. owner is the end port
// with that GUID, nil if none has it.
//
// A port acts for itself and for its aliases. Under an alias it acts for that alias
// alone, neither for its siblings nor for the port.
func (g *Guard) ActsFor(a *portindex.Asker, owner *portindex.EndPort, guid ib.GUID) Verdict {
	if v := g.ActsOn(a, owner); v != OK || g.mayProxy(a) || guid == a.As || a.As == owner.GUID {
		return v
	}
	return Sibling
}

// ActsOn judges a request that names a port by its LID, as a GUIDInfoRecord does.
func (g *Guard) ActsOn(a *portindex.Asker, owner *portindex.EndPort) Verdict {
	if g.mayProxy(a) || owner != nil && owner.Port == a.Port {
		return OK
	}
	return Proxy
}

// mayProxy reports whether a requester may act for any port.
func (g *Guard) mayProxy(a *portindex.Asker) bool {
	return a.Trusted || !g.opts.Model || g.opts.ProxyUntrusted
}
