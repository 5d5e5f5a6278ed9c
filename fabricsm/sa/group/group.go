package group

import (
	"bytes"
	"cmp"
	"iter"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
)

// Config is the fixed configuration of a Registry.
type Config struct {
	Prefix ib.Prefix // subnet prefix; default ib.DefaultPrefix

	// NoJoinValidation accepts joins whose parameters differ from those of the group; the differences are ignored. P_Key,
	// MTU and rate are always checked.
	NoJoinValidation bool
	// NoIPoIBValidation lets IPoIB groups differ from the broadcast group of their
	// partition.
	NoIPoIBValidation bool
	// ShareSNM has IPv6 solicited-node groups share multicast LIDs.
	ShareSNM bool

	PacketLifeTime ib.ExpTime // of groups that leave it open; default 18
	// DefaultMTU and DefaultRate are for a group that leaves them open, if the creating port supports them. By default the
	// group gets the values of the port.
	DefaultMTU  ib.MTU
	DefaultRate ib.Rate
	MaxRate     ib.Rate // the highest code that groups are given; default all

	// Guard and Limits are shared by all of subnet administration; Trust holds the limits. Without a Guard no untrusted
	// port acts for others. Without Limits there are no limits.
	Guard  registry.Guard
	Limits *trust.Limits
	Trust  trust.Options
	// Quota is the number of groups that untrusted requests may make in a partition, by
	// its full P_Key; 0, and nil: an eighth of MaxGroups.
	Quota func(ib.PKey) int
	// Reserve is how many multicast LIDs are kept for groups of the configuration;
	// default 64, at most an eighth of those there are.
	Reserve int
	// MaxGroups bounds the groups of all together; default 65536.
	MaxGroups int

	Policy Policy // default Strict
}

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, ib.DefaultPrefix)
	c.PacketLifeTime = cmp.Or(c.PacketLifeTime, 18)
	c.MaxRate = cmp.Or(c.MaxRate, ^ib.Rate(0))
	c.Reserve = cmp.Or(c.Reserve, 64)
	c.MaxGroups = cmp.Or(c.MaxGroups, 1<<16)
	if c.Limits == nil {
		c.Limits = trust.NewLimits()
	}
	if c.Policy == nil {
		c.Policy = Strict{}
	}
	return c
}

// Params are the parameters that all members of a group share.
type Params struct {
	PKey           ib.PKey
	QKey           uint32
	MTU            ib.MTU
	Rate           ib.Rate
	PacketLifeTime ib.ExpTime
	SL             ib.SL
	TClass         uint8
	FlowLabel      uint32
	HopLimit       uint8
}

// Group is a multicast group. It is immutable.
type Group struct {
	MGID ib.GID
	MLID ib.LID
	Params
	Fixed bool // of the configuration: it stays without members

	members registry.Map[ib.GUID, Member]
	full    int // members that keep it alive
}

// Member is how a port takes part in a group.
type Member struct {
	GUID  ib.GUID // of its GID: a port GUID or an alias
	Port  ib.GUID // port GUID
	State ib.JoinState
	Proxy bool    // another port joined for it
	By    ib.GUID // port GUID of the requester
}

// Len is the number of members.
func (g *Group) Len() int { return g.members.Len() }

// Member returns the member with a port or alias GUID.
func (g *Group) Member(guid ib.GUID) (Member, bool) { return g.members.Get(guid) }

// Members visits all members by GUID.
func (g *Group) Members(yield func(ib.GUID, Member) bool) { g.members.All(yield) }

// MembersAbove visits the members above a GUID, by GUID.
func (g *Group) MembersAbove(guid ib.GUID) iter.Seq2[ib.GUID, Member] { return g.members.Above(guid) }

// keepsAlive reports whether a state keeps a group alive (IBTA volume 1, 15.2.5.17.3).
func keepsAlive(s ib.JoinState) bool { return s&(ib.FullMember|ib.SendOnlyFullMember) != 0 }

// with returns the group with a member updated. A member without a State is removed.
func (g *Group) with(m Member) *Group {
	was, had := g.members.Get(m.GUID)
	n := *g
	if had && keepsAlive(was.State) {
		n.full--
	}
	if m.State == 0 {
		n.members = g.members.Without(m.GUID)
		return &n
	}
	if keepsAlive(m.State) {
		n.full++
	}
	n.members = g.members.With(m.GUID, m)
	return &n
}

// Snapshot is all groups at one moment. It is immutable. The zero Snapshot has none.
type Snapshot struct{ groups registry.Map[ib.GID, *Group] }

// Group returns the group of an MGID, or nil if there is none. It does not check the rights of a requester.
func (s Snapshot) Group(mgid ib.GID) *Group {
	g, _ := s.groups.Get(mgid)
	return g
}

// Len is the number of groups.
func (s Snapshot) Len() int { return s.groups.Len() }

// Above visits the groups above an MGID, by MGID.
func (s Snapshot) Above(mgid ib.GID) iter.Seq2[ib.GID, *Group] { return s.groups.Above(mgid) }

// All visits all groups by MGID.
func (s Snapshot) All(yield func(ib.GID, *Group) bool) { s.groups.All(yield) }

// Effects are the results of a request, or of a change of the fabric, in this order: Save is durable before anything else
// is done.
type Effects struct {
	Save    []sm.Fact
	Groups  *sm.GroupsChanged // for the Subnet Manager; nil: nothing
	Notices []registry.Notice
	Events  []Event
}

// Answer is the answer to a request.
type Answer struct {
	// Verdict is not trust.OK for a request that is dropped. The caller drops it and reports the reason.
	Verdict trust.Verdict
	Status  mad.Status
	Record  mad.MCMemberRecord // with mad.StatusOK
	Effects
}

// Why returns the reason of a refusal that is answered.
func (a *Answer) Why() Reason {
	if len(a.Events) == 0 || a.Events[0].Kind != Refused {
		return NoReason
	}
	return a.Events[0].Reason
}

// Registry is the state of all groups. It is not safe for concurrent use; snapshots
// are.
type Registry struct {
	cfg    Config
	fabric registry.Fabric // nil before the first Follow
	Snapshot

	ports  map[ib.GUID][]seat  // memberships of the GUIDs of a port, by port GUID
	made   map[ib.PKey]int     // groups of a partition that are not Fixed, by base
	mlids  mlids               //
	unseen map[ib.GUID]ib.GUID // ports of GUIDs of members that are not seen, until the fabric is known
	lastID uint32              // of the MGIDs that were chosen here
	top    ib.LID              // the last ceiling

	out     *Effects // of the request at hand
	dirty   []place  // whose part in a multicast LID may have changed
	isDirty map[place]bool
}

// seat is one membership of a port.
type seat struct {
	mgid ib.GID
	guid ib.GUID
}

// place is a port in a multicast LID.
type place struct {
	MLID ib.LID
	GUID ib.GUID // port GUID
}

// New creates a registry without groups. Restore and SetFixed fill it.
func New(cfg Config) *Registry {
	return &Registry{
		cfg: cfg.withDefaults(), Snapshot: Snapshot{registry.NewMap[ib.GID, *Group](compareGIDs)},
		ports: make(map[ib.GUID][]seat), made: make(map[ib.PKey]int),
		mlids: newMLIDs(), unseen: make(map[ib.GUID]ib.GUID), isDirty: make(map[place]bool),
	}
}

func compareGIDs(a, b ib.GID) int { return bytes.Compare(a[:], b[:]) }

// Now returns all current groups.
func (r *Registry) Now() Snapshot { return r.Snapshot }

// begin opens the effects of a request. The returned function closes them.
func (r *Registry) begin(e *Effects) (end func()) {
	r.out, r.dirty = e, r.dirty[:0]
	clear(r.isDirty)
	return r.finish
}

// finish adds the memberships that changed.
func (r *Registry) finish() {
	for _, j := range r.dirty {
		if r.mlids.used[j.MLID] != nil {
			r.change().Joins = append(r.change().Joins, multicast.Join{MLID: j.MLID, GUID: j.GUID, State: r.partIn(j.MLID, j.GUID)})
		}
	}
	r.out = nil
}

// put replaces a group, or makes it.
func (r *Registry) put(g *Group) { r.groups = r.groups.With(g.MGID, g) }

// change returns the input for the Subnet Manager.
func (r *Registry) change() *sm.GroupsChanged {
	if r.out.Groups == nil {
		r.out.Groups = &sm.GroupsChanged{}
	}
	return r.out.Groups
}
