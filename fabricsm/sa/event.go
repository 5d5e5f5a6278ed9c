package sa

import (
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sm"
)

// GroupEvent is something that happened to multicast groups.
type GroupEvent struct {
	sm.Administration
	group.Event
}
