package sa

import (
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/sm"
)

// GroupEvent is something that happened to multicast groups.
type GroupEvent struct {
	sm.Administration
	group.Event
}

// ServiceEvent is something that happened to what hosts offer by name.
type ServiceEvent struct {
	sm.Administration
	service.Event
}
