package mad

import "portcullis/fabricsm/ib"

// MCMemberRecord is a multicast group, or a member of it (attribute 0x0038; IBTA volume
// 1, 15.2.5.17). OpenSM and saquery have ProxyJoin in the lowest bit of its byte, which
// is reserved; Linux (drivers/infiniband/core/sa_query.c) has it where it is here.
type MCMemberRecord struct {
	MGID                   ib.GID       `mad:"0,128"`   // RID
	PortGID                ib.GID       `mad:"128,128"` // RID
	QKey                   uint32       `mad:"256,32,hex"`
	MLID                   ib.LID       `mad:"288,16,hex"`
	MTUSelector            Selector     `mad:"304,2"`
	MTU                    ib.MTU       `mad:"306,6"`
	TClass                 uint8        `mad:"312,8"`
	PKey                   ib.PKey      `mad:"320,16"`
	RateSelector           Selector     `mad:"336,2"`
	Rate                   ib.Rate      `mad:"338,6"`
	PacketLifeTimeSelector Selector     `mad:"344,2"`
	PacketLifeTime         ib.ExpTime   `mad:"346,6"`
	SL                     ib.SL        `mad:"352,4"`
	FlowLabel              uint32       `mad:"356,20,hex"`
	HopLimit               uint8        `mad:"376,8"`
	Scope                  uint8        `mad:"384,4"` // 2 link-local; as in the MGID
	JoinState              ib.JoinState `mad:"388,4"`
	ProxyJoin              bool         `mad:"392,1"` // another port joined for this one
	_                      reserved     `mad:"393,23"`
}
