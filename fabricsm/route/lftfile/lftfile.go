// Package lftfile is the routing engine that takes tables from a file: the format of opensm-lfts.dump, which OpenSM and
// this project write, and OpenSM's engine "file" reads.
//
// The tables are judged like those of any engine, so a file that does not fit the fabric any more is rejected. Where the
// file names the owner of a LID, the routes follow that port, also when it has another LID now.
package lftfile

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// Tables are the content of a file: by node GUID of the switch, an entry a LID.
type Tables struct {
	Switches map[ib.GUID][]Entry
	Owner    map[ib.LID]ib.GUID // port GUIDs, of LIDs whose owner the file names
}

// Entry is one line of a table.
type Entry struct {
	LID  ib.LID
	Port ib.PortNum
}

// Engine implements [route.Engine].
type Engine struct{ Tables *Tables }

// Name returns "file".
func (Engine) Name() string { return "file" }

// Route returns the tables of the file for every switch. Errors are those of [route.NewGraph], that there is no file, and
// that a switch is not in it.
func (e Engine) Route(f *topo.Fabric, prev *route.Tables) (*route.Tables, error) {
	if e.Tables == nil {
		return nil, fmt.Errorf("no file of forwarding tables is given; name one")
	}
	g, err := route.NewGraph(f, prev)
	if err != nil {
		return nil, err
	}
	t := route.NewTables(e.Name(), g, prev)
	now := e.Tables.lids(f)
	for s, id := range g.IDs {
		entries, ok := e.Tables.Switches[g.GUID(int32(s))]
		if !ok {
			return nil, fmt.Errorf("the file has no table of switch %v (%s)", g.GUID(int32(s)), f.Node(id).Description)
		}
		want := make([]ib.PortNum, len(t.LFT(id)))
		for i := range want {
			want[i] = ib.NoPort
		}
		for _, entry := range entries {
			lid := entry.LID
			if moved, ok := now[lid]; ok {
				lid = moved
			}
			if t.Home(lid) != topo.None {
				want[lid] = entry.Port
			}
		}
		for l, port := range want {
			if t.LFT(id)[l] != port {
				t.Writable(prev, id)[l] = port
			}
		}
	}
	return t, nil
}

// lids returns the present LIDs for the LIDs of the file whose owners it names: 0 for those of ports that are gone.
func (t *Tables) lids(f *topo.Fabric) map[ib.LID]ib.LID {
	first := make(map[ib.GUID]ib.LID, len(t.Owner))
	for lid, owner := range t.Owner {
		if base, ok := first[owner]; !ok || lid < base {
			first[owner] = lid
		}
	}
	now := make(map[ib.LID]ib.LID, len(t.Owner))
	for lid, owner := range t.Owner {
		now[lid] = 0
		id := f.PortByGUID(owner)
		if id == topo.None {
			continue
		}
		if p, offset := f.Port(id), lid-first[owner]; p.LID != 0 && int(offset) < 1<<p.LMC {
			now[lid] = p.LID + offset
		}
	}
	return now
}
