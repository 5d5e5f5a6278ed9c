package fabriclog

import (
	"fmt"
	"log/slog"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/sm"
)

// Routes says what an operator has to know of the routes: that clients
// must use the service levels they are given, and which GUIDs of his files are
// nowhere.
type Routes struct {
	Engines []route.Engine
	Log     *slog.Logger
	Notes   []string // said last
}

// OnView looks at a view. Notes about it are logged when they are new.
func (n *Routes) OnView(v *sm.View) {
	if v.State != ib.SMMaster || !v.Settled {
		return
	}
	var notes []string
	if t := v.Tables; t != nil && (t.Layers() > 1 || t.LanesByPort()) {
		notes = append(notes, fmt.Sprintf("routing engine %s uses %d virtual lanes: only clients that take the service level of each path from this subnet manager are safe from deadlock, and path records are not answered yet; engines that need one lane (updn, ftree) are safe for all",
			t.Engine, t.Layers()))
	}
	for _, m := range enginelist.Missing(n.Engines, v.Fabric) {
		notes = append(notes, "routing: "+m)
	}
	for _, note := range notes {
		if !slices.Contains(n.Notes, note) {
			n.Log.Warn(note)
		}
	}
	n.Notes = notes
}
