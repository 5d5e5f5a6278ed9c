package main

import (
	"fmt"
	"log/slog"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/chain"
	"portcullis/fabricsm/sm"
)

// routingNotes says what an operator has to know of the routes: that clients
// must use the service levels they are given, and which GUIDs of his files are
// nowhere.
type routingNotes struct {
	engines []route.Engine
	log     *slog.Logger
	notes   []string // said last
}

// view looks at a view. Notes about it are logged when they are new.
func (n *routingNotes) view(v *sm.View) {
	if v.State != ib.SMMaster || !v.Settled {
		return
	}
	var notes []string
	if t := v.Tables; t != nil && (t.Layers() > 1 || t.LanesByPort()) {
		notes = append(notes, fmt.Sprintf("routing engine %s uses %d virtual lanes: only clients that take the service level of each path from this subnet manager are safe from deadlock, and path records are not answered yet; engines that need one lane (updn, ftree) are safe for all",
			t.Engine, t.Layers()))
	}
	for _, m := range chain.Missing(n.engines, v.Fabric) {
		notes = append(notes, "routing: "+m)
	}
	for _, note := range notes {
		if !slices.Contains(n.notes, note) {
			n.log.Warn(note)
		}
	}
	n.notes = notes
}
