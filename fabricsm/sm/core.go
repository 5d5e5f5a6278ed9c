package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/aliases"
	"portcullis/fabricsm/sm/attributes"
	"portcullis/fabricsm/sm/bruteforce"
	"portcullis/fabricsm/sm/confirm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/sm/discovery"
	"portcullis/fabricsm/sm/election"
	"portcullis/fabricsm/sm/failures"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/forwarding"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/hostwrites"
	"portcullis/fabricsm/sm/identity"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/lids"
	"portcullis/fabricsm/sm/linkspeed"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/sm/notkept"
	"portcullis/fabricsm/sm/pacing"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/portview"
	"portcullis/fabricsm/sm/quarantine"
	"portcullis/fabricsm/sm/refusing"
	"portcullis/fabricsm/sm/rerouting"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/sm/smtrust"
	"portcullis/fabricsm/sm/statechange"
	"portcullis/fabricsm/sm/subtree"
	"portcullis/fabricsm/sm/traps"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/sm/unread"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Core is the Subnet Manager. Use New. It is not safe for concurrent use.
type Core struct {
	cfg     Config
	rules   portpolicy.Rules
	now     time.Time
	born    time.Time // when it was started
	started bool
	// early: forwarding tables are read after the ports are configured, since the LIDs are known.
	early bool
	// toldMute: mute switches were reported.
	toldMute bool

	// observed
	topo       topo.Builder
	nodes      []node // by topo.NodeID
	ports      []port // by topo.PortID
	byPort     map[ib.GUID]topo.PortID
	root       topo.NodeID // the node we are attached to
	rootPort   topo.PortID // our port on it
	tree       *tree.Tree
	configured bool // a link was found that some subnet manager had configured
	looked     bool // a port of another node was read

	// wanted
	lids     *lids.Assigner
	lfts     *forwarding.Tables
	members  *members.Register
	pkeys    *pkeys.Keeper
	groups   *multicast.Groups
	aliases  *aliases.Table
	mkeys    *mkeys.Keeper
	routing  rerouting.Routing
	lanes    *lanes.Lanes
	settings portset.Settings
	links    *linkspeed.Links
	hosts    confirm.Hosts
	sure     confirm.Switches
	unread   unread.Reader

	// work
	q          work.Queue
	wire       work.Window
	timers     work.Timers
	idleWork   pacing.Background
	throttle   pacing.Throttle
	budget     pacing.Budget
	parts      attributes.Parts
	handlers   [work.NumClasses]attributes.Handler // by work.Class
	ended      work.Request                        // the one whose answer is looked at
	failures   failures.List
	auditing   bool // requests made now are part of the audit
	auditAt    topo.PortID
	refusing   refusing.Adapters
	leaseAt    topo.PortID // end port that was read last to keep its lease
	auditRound int         // how often it has seen all ports

	// others
	trust      smtrust.Trust
	election   election.Election
	dropped    uint64
	reports    *violation.Log
	traps      traps.Judge
	wrote      hostwrites.Watcher
	changes    *statechange.Search
	guessing   *bruteforce.Detector
	health     *health.Records
	quarantine quarantine.Keeper
	subtrees   *subtree.Tracker
	contests   *identity.Contests
	finder     *discovery.Finder
	law        *declared.Law

	deadLinks discovery.DeadLinks

	// reports to the owner
	out       Output
	viewAt    time.Time
	viewDue   bool
	disturbed bool  // settled no longer, and no view says so yet
	shown     *View // the last one
	devices   portview.Recorder
	faults    fault.List
	notKept   notkept.Memory // as saved
	tally     settling.Tally
	rest      settling.Rest
}

// fewNodes is how many nodes there is room for at least.
const fewNodes = 128

// New makes a core. It does nothing before it is stepped with Started.
func New(cfg Config) *Core {
	cfg = cfg.withDefaults()
	c := &Core{
		cfg:      cfg,
		root:     topo.None,
		rootPort: topo.None,
		nodes:    make([]node, 0, fewNodes),
		byPort:   make(map[ib.GUID]topo.PortID),
		faults:   fault.New(),
		notKept:  notkept.New(),
		members:  members.New(),
		wire:     work.NewWindow(cfg.Window),
	}
	c.rest = settling.NewRest(restFabric{desk{c}}, &c.q, &c.wire, &c.timers)
	c.routing = rerouting.New(routingFabric{desk{c}}, &c.topo)
	c.devices = portview.New(shownSource{desk{c}}, &c.topo)
	c.tree = tree.New(treeFabric{desk{c}}, &c.topo)
	c.trust = newTrust(c)
	c.election = newElection(c)
	c.pkeys = newTables(c)
	c.lfts = forwarding.New(forwardingFabric{desk{c}}, &c.topo, &c.q)
	c.lids = lids.New(lidFabric{desk{c}}, &c.topo, c.members, lids.Options{LMC: cfg.LMC, Port0: cfg.Ports.LMCPort0})
	c.aliases = aliases.New(aliasFabric{desk{c}}, &c.topo, &c.q, aliases.Pauses{Min: cfg.RetryMin, Max: cfg.RetryMax})
	c.rules = portpolicy.New(&c.topo, &c.cfg.Ports)
	c.settings = newSettings(c)
	c.wrote = hostwrites.New(hostFabric{desk{c}}, &c.topo, &c.q)
	c.hosts = confirm.NewHosts(confirmFabric{desk{c}}, &c.topo, &c.q)
	c.sure = confirm.NewSwitches(confirmFabric{desk{c}}, &c.topo, &c.q)
	c.unread = unread.New(unreadFabric{desk{c}}, &c.topo, &c.q, &c.wire)
	c.law = declared.New(lawFabric{desk{c}}, lawActions{desk{c}}, &c.topo, &c.q, &c.faults, cfg.PortGUID)
	c.mkeys = newKeeper(c)
	c.health = health.New(healthCore{desk{c}}, &c.cfg.Health, &c.faults)
	c.lanes = lanes.New(laneFabric{c}, &c.topo, &c.q, lanes.Options{QoS: &c.cfg.QoS, Off: cfg.SLtoVL == SLtoVLOff})
	c.links = linkspeed.New(linkFabric{desk{c}}, &c.topo, &c.q, &c.rules)
	c.groups = multicast.New(groupFabric{desk{c}}, &c.topo, &c.q)
	c.reports = violation.New(violationFabric{c}, &c.topo, violation.Options{Config: cfg.Violations, PortGUID: cfg.PortGUID, Controls: cfg.Controls.Traps})
	c.quarantine = quarantine.New(&quarantine.Parts{
		Fabric: quarantineFabric{desk{c}}, Actions: quarantineActions{desk{c}}, Topo: &c.topo, Tree: c.tree, Queue: &c.q, Health: c.health,
	})
	c.traps = newTraps(c)
	c.refusing = newRefusing(c)
	c.failures = newFailures(c)
	c.guessing = bruteforce.New(guessFabric{c}, &c.topo)
	c.changes = statechange.New(changeFabric{c}, &c.topo, &c.q, cfg.AuditPeriod > 0)
	c.contests = identity.New(identityFabric{desk{c}}, identityActions{desk{c}}, &c.topo, &c.q)
	c.finder = discovery.New(finderFabric{desk{c}}, finderActions{desk{c}}, &c.topo, &c.q, c.contests, cfg.Controls.Ports)
	c.subtrees = subtree.New(growthFabric{desk{c}}, &c.topo, cfg.Growth)
	c.idleWork = pacing.NewBackground(idle{desk{c}}, &c.q, &c.wire)
	c.throttle = pacing.NewThrottle(c.subtrees, &c.topo, &c.q, &c.wire, cfg.Window)
	c.budget = pacing.NewBudget(allowances{desk{c}}, &c.topo, &c.q, pacing.Pauses{Min: cfg.RetryMin, Max: cfg.RetryMax})
	c.handle()
	return c
}

// Step advances the subnet manager by one input. It never blocks. now must not
// go back.
func (c *Core) Step(now time.Time, in Input) Output {
	c.now = now
	c.out = Output{Save: work.Again(c.out.Save), Answer: work.Again(c.out.Answer), Send: work.Again(c.out.Send)}
	c.tally.Begin(causeOf(in))
	if _, ok := in.(*Received); ok {
		c.tally.Unsolicited++
	}
	if s, ok := in.(*Started); ok && !c.started {
		c.start(s)
	}
	if !c.started {
		return c.out
	}
	c.fire()
	late := c.wire.Age(now, c.cfg.Late)
	switch in := in.(type) {
	case *Reply:
		c.reply(in)
	case *Received:
		c.received(in)
	case *IntentSet:
		c.setIntent(&in.Intent)
	case *IntentChanged:
		c.members.Change(in.Grant, in.Withdraw)
		c.intended(in.Revision)
	case *AliasesSet:
		c.aliases.Set(in.Ports)
	case *HealthMarked:
		healthCore{desk{c}}.marked(in)
	case *Suspected:
		c.suspected(in.Places)
	case *PolicySet:
		c.setPolicy(&in.Policy)
	case *GroupsSet:
		c.viewDue = true
		c.groups.Set(in.MLIDs, in.Joins)
	case *GroupsChanged:
		c.viewDue = true
		c.groups.Change(in.Gone, in.Made, in.Joins)
	case *TablesReady:
		routingFabric{desk{c}}.ended(&in.result)
	case *TopologySet:
		c.law.Set(&declared.Order{Spec: in.Spec, Mode: in.Mode, By: in.By, Back: in.Back}, c.election.State() != ib.SMDiscovering)
	case *TopologyRelease:
		c.law.Release(in.Place, in.By, in.Why)
	case *PortCounted:
		c.refusing.Count(in.GUID, in.Packets)
	case *ClassTrapJudged:
		p, known := c.byPort[in.GUID]
		if !known {
			p = topo.None
		}
		c.reports.JudgeClass(p, violation.ClassJudgment(*in))
	case *PacketsRefused:
		if p, known := c.byPort[in.Switch]; known {
			c.reports.NotePacketsRefused(p, in.Port, in.Peer, uint64(in.Count))
		}
	case *ReleaseKeys:
		c.mkeys.Release()
	case *ResumeKeys:
		c.mkeys.Resume()
	case *MoveKey:
		c.mkeys.Move(in.GUID, in.Place)
	case *RetireKey:
		c.mkeys.Retire(in.GUID)
	case *LendKey:
		c.mkeys.Leases().Lend(in.GUID, in.Until, in.To)
	case *Resign:
		c.election.Resign()
	case *Mandate:
		c.election.SetMandate(in.Held)
	}
	c.plant()
	c.lids.SettleOpen()
	c.pump()
	for c.settle() {
		c.pump()
	}
	c.wire.Trim()
	c.out.Wake = c.wake(late)
	c.out.Resigned = c.election.HasResigned()
	return c.out
}

func (c *Core) start(s *Started) {
	c.started, c.born = true, c.now
	c.tally.Start(c.now, sent(&c.wire))
	c.load(s.Facts)
	c.early = c.cfg.AnswersEarly && c.lids.Owners() > 0
	keyStore{desk{c}}.start(s.Facts)
	lawActions{desk{c}}.start(s.Facts)
	c.lids.PreferAll(&c.cfg.LIDs)
	c.event(&StateChanged{State: c.election.State(), Reason: "started"})
	// The marks of work.Root live in node 0, so its slot must exist before the node has answered.
	c.nodes = append(c.nodes, node{})
	c.q.Extend(1, 0)
	c.tree.Extend(1)
	c.q.Mark(rootRef)
	if c.cfg.IntentWait > 0 {
		c.after(c.cfg.IntentWait, work.Intent, work.Ref{})
	} else {
		c.members.StopWaiting()
	}
	c.election.Start()
	if c.mkeys.IsOn() && c.cfg.MKey.Lease > 0 && c.cfg.Controls.Keys.KeepsLeasesFirst() {
		c.after(leaseTick, work.KeepLeases, work.Ref{})
	}
	if c.cfg.LIDPeriod > 0 {
		c.after(hostwrites.LIDTick, work.LIDs, work.Ref{})
	}
	if c.cfg.AuditPeriod > 0 {
		c.after(auditTick, work.Audit, work.Ref{})
	}
}

func (c *Core) event(e Event) { c.out.Events = append(c.out.Events, e) }

func (c *Core) save(f Fact) { c.out.Save = append(c.out.Save, f) }

func (c *Core) load(facts []Fact) {
	for _, f := range facts {
		switch f.Kind {
		case FactLID:
			c.lids.Load(f.GUID, f.LID, f.LMC)
		case FactHealth:
			healthCore{desk{c}}.load(&f)
		case FactBehind:
			c.mkeys.Places().LoadBehind(ib.Place{Switch: f.GUID, Port: f.Port}, f.Behind)
		case FactExposed:
			c.mkeys.LoadExposed(f.GUID, f.Mark)
		case FactLent:
			c.mkeys.Leases().Load(f.GUID, f.Since, f.Mark)
		case FactReleased:
			c.mkeys.LoadReleased(f.Mark != "")
		case FactLanes:
			c.lanes.Load(f.Mark)
		case FactNotKept:
			c.notKept.Load(notkept.Device{GUID: f.GUID, Model: notkept.ParseModel(f.Model), Place: f.Place}, f.NotKept)
		case FactTopology, FactTopologyMode: // see startTopology
		case FactVault, FactMaster, FactCheck: // of the store alone
		case FactSAGroup, FactSAMember, FactSAService, FactSASubscription, FactSAAlias, FactSAKeys: // of subnet administration
		}
	}
}

// wake returns the earliest time at which something has to happen.
func (c *Core) wake(late time.Time) time.Time {
	next := late
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if c.wire.Fresh() > 0 && next.IsZero() {
		sooner(c.now.Add(c.cfg.Late))
	}
	if due := c.timers.Next(); !due.IsZero() {
		sooner(due)
	}
	if c.viewDue {
		sooner(c.viewAt.Add(c.cfg.ViewEvery))
	}
	return next
}

// writing reports whether this SM may change devices.
func (c *Core) writing() bool { return c.election.IsWriting() }
