package sa

import (
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/inform"
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

// SubscriptionEvent is something that happened to subscriptions to notices.
type SubscriptionEvent struct {
	sm.Administration
	inform.Event
}

// AliasEvent says what a port was given, or not, beside its own GUID.
type AliasEvent struct {
	sm.Administration
	alias.Event
}
