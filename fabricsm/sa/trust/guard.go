package trust

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
)

// Packet is a request as it came.
type Packet struct {
	MAD  *mad.MAD
	LID  ib.LID // of the source
	QP   uint32 // of the source
	GRH  bool   // it has one
	SGID ib.GID // of its GRH
}

// Source is the end port with the source LID of a packet, with its known properties.
type Source struct {
	Port   *portindex.EndPort // nil: no port has the LID
	Router bool               // it is a port of a router
}

// Guard judges requests by their header.
type Guard struct {
	opts   Options
	subnet ib.Prefix
	keys   *Keys
	pace   pace
}

// NewGuard creates a guard. keys belongs to the caller, which changes them.
func NewGuard(opts Options, subnet ib.Prefix, keys *Keys) (*Guard, error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	return &Guard{opts: opts, subnet: subnet, keys: keys}, nil
}

// Configure changes the options.
func (g *Guard) Configure(opts Options) error {
	if err := opts.Check(); err != nil {
		return err
	}
	g.opts = opts
	return nil
}

// Apart returns a guard with the same options and keys that counts requests by itself.
func (g *Guard) Apart() *Guard { return &Guard{opts: g.opts, subnet: g.subnet, keys: g.keys} }

// Check judges a request that the limiter admitted, and returns the requester, as far as it is known. See the package
// comment for the further checks. It does not allocate.
func (g *Guard) Check(now time.Time, p *Packet, from Source) (portindex.Asker, Verdict) {
	a := portindex.Asker{LID: p.LID, QP: p.QP}
	m := p.MAD
	if !isRequest(m) {
		return a, BadHeader
	}
	if from.Port == nil {
		return a, UnknownSource
	}
	a.Port = from.Port.Port
	var spoofed bool
	a.As, spoofed = As(from.Port, p.GRH, p.SGID, g.subnet)
	if !g.pace.take(now, g.opts.Threshold, from.Port, a.As) {
		return a, TooOften
	}
	shown := g.keys.Show(now, m.SAKeyBits())
	switch {
	case shown == ShownWrong:
		return a, WrongKey
	case shown == ShownRetired:
		return a, RetiredKey
	case spoofed && g.opts.CheckSGID && !from.Router:
		return a, SpoofedSGID
	case shown == ShownRight && !g.source(a.As):
		return a, KeyElsewhere
	}
	if a.Trusted = shown == ShownRight; a.Trusted {
		a.Epoch = uint64(g.keys.epoch(m.SAKeyBits()))
	}
	if !g.opts.Model {
		return a, OK
	}
	if alias(m.Attr(), m.Method()) && a.As != from.Port.GUID && !g.opts.AliasesByAlias {
		return a, AliasRefused
	}
	if a.Trusted {
		return a, OK
	}
	return a, g.opts.untrusted(m)
}

// source reports whether trusted requests are taken from a port or alias.
func (g *Guard) source(as ib.GUID) bool {
	return len(g.opts.TrustedSources) == 0 || slices.Contains(g.opts.TrustedSources, as)
}

// isRequest reports whether a MAD is a request of class 0x03.
func isRequest(m *mad.MAD) bool {
	return m.BaseVersion() == 1 && m.Class() == mad.ClassSubnAdm && m.ClassVersion() == mad.SAClassVersion && !m.IsResponse()
}
