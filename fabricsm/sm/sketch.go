package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/portview"
	"portcullis/fabricsm/topo"
)

// Sketch makes views without a core, for tests and measurements of those that read
// views. Views made one after the other share what did not change, as those of a
// core do. The zero Sketch knows nothing.
type Sketch struct{ portview.Sketch }

// View returns the view of a master whose fabric is settled.
func (s *Sketch) View(f *topo.Fabric, t *route.Tables) *View {
	return &View{Fabric: f, Tables: t, State: ib.SMMaster, Settled: true, Devices: s.Devices(f, t)}
}
