package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sm"
)

// What an event names: its text has 512 bytes.
const (
	maxForeignTables = 3
	maxForeignPKeys  = 4 // of a table
)

// foreign collects P_Keys that the Subnet Manager removes and that no membership explains. They are one event each nodesEvery,
// since a takeover finds those of a whole fabric within seconds. The journal has a line for each table.
type foreign struct {
	tables int      // that had some
	named  []string // the first maxForeignTables of them
	untold untold
}

// take takes a report of the Subnet Manager. host: the one of the port or of the place, empty if inventory has none.
func (f *foreign) take(e *sm.ForeignPKeys, host string) {
	f.tables++
	if len(f.named) == maxForeignTables {
		return
	}
	table := "switch port"
	if e.Adapter {
		table = "adapter at"
	}
	keys := make([]string, 0, len(e.PKeys))
	for _, k := range e.PKeys[:min(len(e.PKeys), maxForeignPKeys)] {
		keys = append(keys, k.String())
	}
	if more := len(e.PKeys) - len(keys); more > 0 {
		keys = append(keys, fmt.Sprintf("%d more", more))
	}
	f.named = append(f.named, fmt.Sprintf("%s at %s %v (%s)", strings.Join(keys, " "), table, e.Place, cmp.Or(host, "no host of the inventory")))
}

// publish makes an event of what was taken, unless one still waits for the store: then that which is taken waits, too.
func (f *foreign) publish(now time.Time) {
	if f.tables == 0 || len(f.untold) > 0 {
		return
	}
	slices.Sort(f.named)
	e := v1.Event{
		Type: events.FabricForeign, Cause: "removed", By: events.ByService, Last: now,
		Expected: "P_Keys of tenants are where a membership has them",
		Seen:     fmt.Sprintf("removed from %d tables: %s", f.tables, strings.Join(f.named, "; ")),
		Do:       "find out which program set them; each table: journalctl -u portcullisd PORTCULLIS_EVENT=foreign-pkeys",
	}
	if more := f.tables - len(f.named); more > 0 {
		e.Seen += fmt.Sprintf("; and %d more", more)
	}
	f.untold = append(f.untold, e)
	f.tables, f.named = 0, nil
}
