package portview

import (
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/aliases"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/topo"
)

// Sketch makes snapshots without a core, for tests and measurements of those that read views. Snapshots made one after the
// other share what did not change. The zero Sketch knows nothing.
type Sketch struct {
	pkeys   topo.OwnPages[*pkeys.Table]
	aliases *aliases.Shown
}

// SetPKeys sets the P_Key table of a port, read and proven; nil: it was not read.
func (s *Sketch) SetPKeys(p topo.PortID, keys ...ib.PKey) {
	s.pkeys.Grow(int(p) + 1)
	if keys == nil {
		s.pkeys.Set(int32(p), nil)
		return
	}
	s.pkeys.Set(int32(p), pkeys.NewTable(keys))
}

// SetAliases sets alias GUIDs of a port.
func (s *Sketch) SetAliases(p topo.PortID, guids ...ib.GUID) {
	next := &aliases.Shown{ByPort: make(map[topo.PortID][]ib.GUID)}
	if s.aliases != nil {
		maps.Copy(next.ByPort, s.aliases.ByPort)
	}
	next.ByPort[p] = slices.Clone(guids)
	s.aliases = next
}

// Devices returns a snapshot of a fabric.
func (s *Sketch) Devices(f *topo.Fabric, t *route.Tables) Devices {
	s.pkeys.Grow(f.NumPorts())
	return Devices{fabric: f, routes: t, pkeys: s.pkeys.Snapshot(), aliases: s.aliases}
}
