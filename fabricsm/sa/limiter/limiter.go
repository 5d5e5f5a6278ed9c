package limiter

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Lane is the lane of a packet; see the package comment. Its text appears in metrics.
type Lane uint8

// Lanes.
const (
	Ours Lane = iota
	Management
	Administration
	Other
	Managers
	numLanes
)

// NumLanes is how many there are.
const NumLanes = int(numLanes)

var laneNames = [numLanes]string{"ours", "management", "administration", "other", "managers"}

// String returns the name, for example "administration".
func (l Lane) String() string {
	if l < numLanes {
		return laneNames[l]
	}
	return fmt.Sprintf("lane %d", uint8(l))
}

// Verdict is the decision about a packet. Its text appears in metrics.
type Verdict uint8

// Verdicts.
const (
	Pass      Verdict = iota
	Malformed         // it is no MAD: its length is wrong
	NodeRate          // the node sends more than its rate
	Share             // the lane is full, and its tenant has had its share
	numVerdicts
)

// NumVerdicts is how many there are.
const NumVerdicts = int(numVerdicts)

var verdictNames = [numVerdicts]string{"pass", "malformed", "node-rate", "share"}

// String returns the name, for example "node-rate".
func (v Verdict) String() string {
	if v < numVerdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// Packet describes a received packet.
type Packet struct {
	LID    ib.LID // of the source
	Class  mad.Class
	Method mad.Method
	Length int // of the MAD in bytes
	// Route is the way by which a directed route came whose sender is not known, as one
	// number below [NumRoutes]. LID is then ib.PermissiveLID. It must not depend on bytes
	// that the sender chose.
	Route uint8
	// Manager: the sender is a subnet manager with which this one works.
	Manager bool
	// Expected means that the packet answers a pending request. The caller compared transaction and source.
	Expected bool
}

// lane returns the lane of a packet.
func (p *Packet) lane() Lane {
	switch {
	case p.Expected:
		return Ours
	case p.Method.IsResponse():
		return Other
	case p.Class == mad.ClassSubn || p.Class == mad.ClassSubnDR:
		if p.Manager {
			return Managers
		}
		return Management
	case p.Class == mad.ClassSubnAdm:
		return Administration
	default:
		return Other
	}
}

// Drops counts the dropped packets of a node since the last report.
type Drops struct {
	LID   ib.LID // base LID; 0: sources that no port has; ib.PermissiveLID: directed routes of unknown senders
	Route uint8  // of such directed routes
	Count uint64
	Total uint64 // since the limiter was made
	Last  Lane   // of the last one
	Why   Verdict
}

// lane is the state of one lane.
type lane struct {
	all   fair
	cost  int64 // of a token of a node in nanoseconds, rounded up; 0: no limit
	room  int64
	nodes [slots]int64 // when a node is full again, in nanoseconds
}

// Limiter is used by one goroutine. All its memory, some megabytes, is there from the
// beginning.
type Limiter struct {
	nodes   *Nodes
	tenants int // as SetNodes found it
	clock   clock
	moved   int64 // time that the lanes have had, in nanoseconds
	lanes   [numLanes]lane

	totals [numLanes][numVerdicts]uint64
	drops  [slots]drops
	dirty  []uint16 // slots with unreported drops
}

type drops struct {
	total, told uint64
	lane        Lane
	why         Verdict
}

// New makes a limiter that knows no node yet: until SetNodes all sources are one.
func New(cfg Config) (*Limiter, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	l := &Limiter{nodes: new(Nodes), dirty: make([]uint16, 0, slots)}
	l.set(&cfg)
	return l, nil
}

// Configure changes the limits from now on. Counters stay; the used bursts of nodes and tenants are forgotten. After an
// error nothing changes.
func (l *Limiter) Configure(cfg Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	l.set(&cfg)
	return nil
}

func (l *Limiter) set(cfg *Config) {
	for i, c := range cfg.lanes() {
		to := &l.lanes[i+int(Management)]
		to.all.init(c.All)
		to.all.divide(l.tenants + 1)
		to.cost, to.room = perNode(c.Node)
		clear(to.nodes[:])
	}
}

func perNode(a Allowance) (cost, room int64) {
	if a.Rate == 0 {
		return 0, 0
	}
	cost = (int64(time.Second) + int64(a.Rate) - 1) / int64(a.Rate)
	return cost, cost * int64(a.Burst)
}

// SetNodes sets the nodes and tenants of all LIDs from now on. The used allowances stay with the numbers of nodes and
// tenants. When the number of tenants changes, the burst is divided again, and up to one more burst may pass.
func (l *Limiter) SetNodes(n *Nodes) {
	if n.tenants != l.tenants {
		l.tenants = n.tenants
		for i := range l.lanes {
			l.lanes[i].all.divide(n.tenants + 1)
		}
	}
	l.nodes = n
}

// Admit decides about a packet that arrives now.
func (l *Limiter) Admit(now time.Time, p Packet) Verdict {
	in := p.lane()
	v, slot := Pass, uint16(noNode)
	switch {
	case p.Length != mad.Size:
		slot, _ = l.nodes.find(p.LID, p.Route, l.tenants)
		v = Malformed
	case in != Ours:
		v, slot = l.limit(now, &l.lanes[in], p)
	}
	l.totals[in][v]++
	if v != Pass {
		l.drop(slot, in, v)
	}
	return v
}

func (l *Limiter) limit(now time.Time, in *lane, p Packet) (Verdict, uint16) {
	at := l.clock.read(now)
	slot, tenant := l.nodes.find(p.LID, p.Route, l.tenants)
	full := max(in.nodes[slot], at)
	if in.cost != 0 && full-at > in.room-in.cost {
		return NodeRate, slot
	}
	if went := at - l.moved; went > 0 {
		l.moved = at
		l.pass(went)
	}
	if !in.all.has(tenant) {
		return Share, slot
	}
	in.all.take(tenant)
	in.nodes[slot] = full + in.cost
	return Pass, slot
}

// pass advances the time of all lanes.
func (l *Limiter) pass(ns int64) {
	ps := min(ns, slowest*int64(time.Second)) * 1000
	for i := Management; i < numLanes; i++ {
		l.lanes[i].all.pass(ps)
	}
}

func (l *Limiter) drop(slot uint16, in Lane, why Verdict) {
	d := &l.drops[slot]
	if d.total == d.told {
		l.dirty = append(l.dirty, slot)
	}
	d.total++
	d.lane, d.why = in, why
}

// Total is how many packets of a lane met a verdict.
func (l *Limiter) Total(in Lane, v Verdict) uint64 { return l.totals[in][v] }

// Dropped is how many packets of a node were dropped since the limiter was made. It is
// named by its base LID, or as in Drops.
func (l *Limiter) Dropped(base ib.LID) uint64 {
	if base == ib.PermissiveLID {
		var total uint64
		for i := range NumRoutes {
			total += l.drops[routed+i].total
		}
		return total
	}
	return l.drops[slotOf(base)].total
}

// Told returns the drops of nodes since its last call, in the order in which they began.
func (l *Limiter) Told(yield func(Drops)) {
	for _, slot := range l.dirty {
		d := &l.drops[slot]
		lid, route := ib.LID(slot), uint8(0)
		if slot >= routed {
			lid, route = ib.PermissiveLID, uint8(slot-routed)
		}
		yield(Drops{LID: lid, Route: route, Count: d.total - d.told, Total: d.total, Last: d.lane, Why: d.why})
		d.told = d.total
	}
	l.dirty = l.dirty[:0]
}

// clock converts the given times to one that does not go backwards, in nanoseconds since the first.
type clock struct {
	begun bool
	last  time.Time
	at    int64
}

// back is how far times may go back because several threads read the clock. If a time goes back further, the clock was set,
// and time continues from the new value.
const back = time.Second

func (c *clock) read(now time.Time) int64 {
	went := now.Sub(c.last)
	switch {
	case !c.begun, went < -back:
		c.begun, c.last = true, now
	case went > 0:
		c.last = now
		c.at += int64(went)
	}
	return c.at
}
