package conf

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
)

// Multicast is a multicast group that a file wants to be there, with or without members.
type Multicast struct {
	PKey      ib.PKey // full
	MGID      ib.GID  // zero: the IPoIB broadcast group of the partition
	Scope     uint8   // of a broadcast group: 2 is link-local
	QKey      uint32
	MTU       ib.MTU
	Rate      ib.Rate
	SL        ib.SL
	TClass    uint8
	FlowLabel uint32
}

// Defaults of groups, as OpenSM has them: IPoIB's Q_Key, 2048 bytes and 10 Gb/s.
const (
	defaultQKey      = 0x0B1B
	defaultMTU       = ib.MTU2048
	defaultRate      = ib.Rate10
	scopeLinkLocal   = 2
	mostMulticasts   = 1 << 14
	signatureIPv4    = 0x401B
	signatureIPv6    = 0x601B
	pkeyOfIPoIBGroup = 4 // byte of the MGID
)

// groupFlags are the flags that describe multicast groups.
type groupFlags struct {
	given  []string
	scopes []uint8
	group  Multicast
}

// set takes a flag. A word that is none is not known.
func (f *groupFlags) set(word, value string) (known bool, err error) {
	var least, most uint64
	switch word {
	case "rate":
		least, most = uint64(ib.Rate2_5), 63
	case "mtu":
		least, most = uint64(ib.MTU256), uint64(ib.MTU4096)
	case "sl":
		most = 15
	case "scope":
		least, most = 1, 14
	case "Q_Key":
		most = 1<<32 - 1
	case "TClass":
		most = 1<<8 - 1
	case "FlowLabel":
		most = 1<<20 - 1
	default:
		return false, nil
	}
	n, err := number(value, 32)
	if err != nil {
		return true, fmt.Errorf("%s: %w", word, err)
	}
	if n < least || n > most || word == "rate" && ib.Rate(n).Mbps() == 0 {
		return true, fmt.Errorf("%s %d: want a code of the standard, %d to %d", word, n, least, most)
	}
	f.given = append(f.given, word)
	switch g := &f.group; word {
	case "rate":
		g.Rate = ib.Rate(n)
	case "mtu":
		g.MTU = ib.MTU(n)
	case "sl":
		g.SL = ib.SL(n)
	case "scope":
		f.scopes = append(f.scopes, uint8(n))
	case "Q_Key":
		g.QKey = uint32(n)
	case "TClass":
		g.TClass = uint8(n)
	default:
		g.FlowLabel = uint32(n)
	}
	return true, nil
}

func (f *groupFlags) has(word string) bool { return slices.Contains(f.given, word) }

// of returns the group that flags describe, in a partition whose service level is sl.
func (f *groupFlags) of(k ib.PKey, sl ib.SL) Multicast {
	g := f.group
	g.PKey = k.Full()
	if !f.has("rate") {
		g.Rate = defaultRate
	}
	if !f.has("mtu") {
		g.MTU = defaultMTU
	}
	if !f.has("Q_Key") {
		g.QKey = defaultQKey
	}
	if !f.has("sl") {
		g.SL = sl
	}
	return g
}

// named is a group with an MGID, as it was written.
type named struct {
	line  int
	mgid  ib.GID
	flags groupFlags
}

// group reads a multicast group of the last definition: mgid, and flags.
func (p *parser) group(text string) {
	d := &p.defs[len(p.defs)-1]
	text, flags, _ := strings.Cut(text, ",")
	g := named{line: p.line}
	gid, err := ib.ParseGID(strings.TrimSpace(text))
	if err != nil || !gid.IsMulticast() {
		p.wrong(p.line, "mgid %q: want an IPv6 address that begins with ff", short(strings.TrimSpace(text)))
		return
	}
	g.mgid = gid
	for flag := range strings.SplitSeq(flags, ",") {
		if flag = strings.TrimSpace(flag); flag == "" {
			continue
		}
		word, value, _ := strings.Cut(flag, "=")
		switch known, err := g.flags.set(strings.TrimSpace(word), strings.TrimSpace(value)); {
		case !known:
			p.wrong(p.line, "flag %q of mgid is not known", short(flag))
		case err != nil:
			p.wrong(p.line, "%w", err)
		}
	}
	d.named = append(d.named, g)
}

// identity is what makes two groups the same.
type identity struct {
	mgid  ib.GID
	pkey  ib.PKey // of a broadcast group
	scope uint8   // likewise
}

// multicast adds the groups of a definition to the rules.
func (p *parser) multicast(d *definition, r *Rules) {
	sl := d.flags.group.SL
	if d.flags.has("sl") {
		if r.SLs == nil {
			r.SLs = make(map[ib.PKey]ib.SL)
		}
		r.SLs[d.pkey.Base()] = sl
	}
	add := func(line int, g Multicast) {
		which := identity{mgid: g.MGID}
		if g.MGID == (ib.GID{}) {
			which = identity{pkey: g.PKey, scope: g.Scope}
		}
		was, twice := p.seen[which]
		switch {
		case twice && was != g:
			p.wrong(line, "a multicast group is there twice, and not the same")
		case twice:
		case len(r.Groups) == mostMulticasts:
			p.wrong(line, "more than %d multicast groups", mostMulticasts)
		default:
			p.seen[which] = g
			r.Groups = append(r.Groups, g)
		}
	}
	switch rest := slices.DeleteFunc(slices.Clone(d.flags.given), func(w string) bool { return w == "sl" }); {
	case d.ipoib:
		scopes := d.flags.scopes
		if len(scopes) == 0 {
			scopes = []uint8{scopeLinkLocal}
		}
		for _, s := range scopes {
			g := d.flags.of(d.pkey, sl)
			g.Scope = s
			add(d.line, g)
		}
	case len(rest) > 0:
		p.notice(d.line, "%s: no effect without ipoib", strings.Join(rest, ", "))
	}
	for i := range d.named {
		n := &d.named[i]
		g := n.flags.of(d.pkey, sl)
		g.MGID = n.mgid
		if len(n.flags.scopes) > 0 {
			p.notice(n.line, "scope: no effect beside mgid, which has it")
		}
		if s := binary.BigEndian.Uint16(g.MGID[2:]); s == signatureIPv4 || s == signatureIPv6 {
			at := g.MGID[pkeyOfIPoIBGroup:]
			switch k := ib.PKey(binary.BigEndian.Uint16(at)); {
			case k == 0:
				binary.BigEndian.PutUint16(at, uint16(d.pkey.Full()))
			case k.Base() != d.pkey.Base():
				p.wrong(n.line, "mgid %v: it is a group of P_Key %v, not of %v", g.MGID, k, d.pkey)
				continue
			}
		}
		add(n.line, g)
	}
}
