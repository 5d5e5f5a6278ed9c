package alias

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sm"
)

// A fact is of a port, by its GUID. Its body is, in hexadecimal digits, the version of
// its form, the place, and the aliases from entry 1 on.
const (
	factVersion = 1
	factHeader  = 10
	guidSize    = 8
	maxAliases  = 255
)

func factOf(port ib.GUID, g given) sm.Fact {
	f := sm.Fact{Kind: sm.FactSAAlias, Name: fmt.Sprintf("%016x", uint64(port))}
	if len(g.aliases) == 0 {
		return f
	}
	b := []byte{factVersion}
	b = binary.BigEndian.AppendUint64(b, uint64(g.place.Switch))
	b = append(b, byte(g.place.Port))
	for _, a := range g.aliases {
		b = binary.BigEndian.AppendUint64(b, uint64(a))
	}
	f.Body = hex.EncodeToString(b)
	return f
}

// Restore fills an empty registry with saved facts, in any order. It ignores facts of other kinds. A fact that cannot be
// restored is reported and deleted.
func (r *Registry) Restore(facts []sm.Fact) (e Effects) {
	mine := registry.Saved(facts, sm.FactSAAlias)
	for i := range mine {
		port, g, ok := r.read(&mine[i])
		if !ok {
			e.Save = append(e.Save, sm.Fact{Kind: sm.FactSAAlias, Name: mine[i].Name})
			e.Events = append(e.Events, Event{Port: port, Gone: true, Reason: UnusableFact})
			continue
		}
		r.given = r.given.With(port, g)
		for _, a := range g.aliases {
			if a != 0 {
				r.owner[a] = port
			}
		}
	}
	return e
}

// read reads a fact. An alias that another port was given is none to believe.
func (r *Registry) read(f *sm.Fact) (port ib.GUID, g given, ok bool) {
	name, err := hex.DecodeString(f.Name)
	b, bad := hex.DecodeString(f.Body)
	if err != nil || bad != nil || len(name) != guidSize || len(b) <= factHeader || b[0] != factVersion || (len(b)-factHeader)%guidSize != 0 || len(b) > factHeader+maxAliases*guidSize {
		return 0, g, false
	}
	port = ib.GUID(binary.BigEndian.Uint64(name))
	g.place = ib.Place{Switch: ib.GUID(binary.BigEndian.Uint64(b[1:])), Port: ib.PortNum(b[9])}
	for b = b[factHeader:]; len(b) > 0; b = b[guidSize:] {
		a := ib.GUID(binary.BigEndian.Uint64(b))
		if _, has := r.owner[a]; has || a != 0 && (!a.Valid() || slices.Contains(g.aliases, a)) {
			return port, g, false
		}
		g.aliases = append(g.aliases, a)
	}
	return port, g, port.Valid() && g.place != ib.Place{}
}
