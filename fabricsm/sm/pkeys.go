package sm

import "portcullis/fabricsm/ib"

// pkeyTable is what was read of a P_Key table. It is immutable once a view
// shows it.
type pkeyTable struct {
	keys  []ib.PKey
	clean bool
}

func (t *pkeyTable) proven() bool { return t.clean }
