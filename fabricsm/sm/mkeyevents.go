package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// KeyProblem says why a device does not have the M_Key that it should have.
type KeyProblem struct {
	GUID   ib.GUID  // port GUID, of a switch that of port 0
	Place  ib.Place // zero for a switch
	Reason string
}

// KeyExposed says that the M_Key of a device was shown to another one, which
// was met where that device belongs. The device gets another key.
type KeyExposed struct {
	GUID  ib.GUID // whose key it is
	Place ib.Place
	To    ib.GUID // who answered there
}

func (*KeyProblem) event() {}
func (*KeyExposed) event() {}

func (e *KeyProblem) String() string {
	at := ""
	if !e.Place.IsZero() {
		at = fmt.Sprintf(" at %v", e.Place)
	}
	return fmt.Sprintf("port %v%v is not protected by an M_Key of ours: %s", e.GUID, at, e.Reason)
}

func (e *KeyExposed) String() string {
	return fmt.Sprintf("the M_Key of %v was shown to %v, which answers at %v where that belongs; it gets a new one", e.GUID, e.To, e.Place)
}
