package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/bruteforce"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// guessFabric is the core as package bruteforce uses it, which detects hosts that try keys.
type guessFabric struct{ *Core }

var _ bruteforce.Fabric = guessFabric{}

func (f guessFabric) Now() time.Time                   { return f.now }
func (f guessFabric) Window() time.Duration            { return f.cfg.Health.Guessing.Window }
func (f guessFabric) Root() topo.NodeID                { return f.root }
func (f guessFabric) Own() topo.PortID                 { return f.own() }
func (f guessFabric) PlaceOf(end topo.PortID) ib.Place { return f.topo.PlaceOf(end) }
func (f guessFabric) LeadsOn(p topo.PortID) bool       { return f.tree.Probes(p) }
func (f guessFabric) IsDeclared(at ib.Place) bool      { return f.law.IsLawful(at) }
func (f guessFabric) IsManager(end topo.PortID) bool   { return f.listed(end) }
func (f guessFabric) Accuse(at ib.Place, node ib.GUID) { f.health.Strike(at, node, health.Guessing) }

func (f guessFabric) VouchesFor(sw topo.NodeID) bool {
	return f.law.IsOn() && f.topo.Node(sw).Type == ib.NodeSwitch && f.law.Trusts(f.topo.NodeGUID(sw))
}

// readNotices reads the notices that a device has queued, which was shown wrong keys.
func (c *Core) readNotices(p topo.PortID) {
	if c.ports[p].info.CapabilityMask.Has(mad.IsNoticeSupported) && c.guessing.ReadQueue(p) {
		c.q.MarkPort(work.Notice, p)
	}
}

// workNotice reads the oldest notice of a device, or takes it away.
func (c *Core) workNotice(p topo.PortID) {
	if !c.writing() {
		return
	}
	taking, due := c.guessing.NextNotice(p)
	if !due {
		return
	}
	x, id := work.OnPort(work.Notice, p), c.ports[p].node
	c.auditing = true // nothing that is wanted depends on it
	defer func() { c.auditing = false }()
	if taking == nil {
		c.ask(x, id, mad.MethodGet, mad.AttrNotice, 0)
		return
	}
	m := c.ask(x, id, mad.MethodSet, mad.AttrNotice, 0)
	c.encode(mad.Encode(m.Data(), taking))
}

// gotNotice handles the answer of a device about its oldest notice.
func (c *Core) gotNotice(p topo.PortID, r *work.Request, m *mad.MAD, status mad.Status) {
	var n mad.Notice
	if status != mad.StatusOK || mad.Decode(m.Data(), &n) != nil {
		c.guessing.Forget(p)
		return
	}
	var next bruteforce.Next
	if r.Method == mad.MethodSet {
		next = c.guessing.RecordTaken(p)
	} else {
		next = c.guessing.RecordNotice(p, &n, m.Data())
	}
	switch next {
	case bruteforce.Now:
		c.q.MarkPort(work.Notice, p)
	case bruteforce.Later:
		c.after(violation.CheckPause, work.Retry, work.OnPort(work.Notice, p))
	case bruteforce.Never:
	}
}
