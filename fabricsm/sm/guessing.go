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
func (f guessFabric) IsManager(end topo.PortID) bool   { return f.trust.IsListed(end) }
func (f guessFabric) Accuse(at ib.Place, node ib.GUID) { f.health.Strike(at, node, health.Guessing) }

func (f guessFabric) VouchesFor(sw topo.NodeID) bool {
	return f.law.IsOn() && f.topo.Node(sw).Type == ib.NodeSwitch && f.law.Trusts(f.topo.NodeGUID(sw))
}

// notices is the core as it reads the notices that devices have queued, as package bruteforce says.
type notices struct{ desk }

// read reads the notices that a device has queued, which was shown wrong keys.
func (n notices) read(p topo.PortID) {
	if n.ports[p].info.CapabilityMask.Has(mad.IsNoticeSupported) && n.guessing.ReadQueue(p) {
		n.q.MarkPort(work.Notice, p)
	}
}

// Work reads the oldest notice of a device, or takes it away.
func (n notices) Work(x work.Ref) {
	p := x.Port()
	if !n.writing() {
		return
	}
	taking, due := n.guessing.NextNotice(p)
	if !due {
		return
	}
	id := n.ports[p].node
	n.auditing = true // nothing that is wanted depends on it
	defer func() { n.auditing = false }()
	if taking == nil {
		n.ask(x, id, mad.MethodGet, mad.AttrNotice, 0)
		return
	}
	m := n.ask(x, id, mad.MethodSet, mad.AttrNotice, 0)
	n.encode(mad.Encode(m.Data(), taking))
}

// Got handles the answer of a device about its oldest notice.
func (n notices) Got(r *work.Request, m *mad.MAD, status mad.Status) {
	p := r.Ref.Port()
	var oldest mad.Notice
	if status != mad.StatusOK || mad.Decode(m.Data(), &oldest) != nil {
		n.guessing.Forget(p)
		return
	}
	var next bruteforce.Next
	if r.Method == mad.MethodSet {
		next = n.guessing.RecordTaken(p)
	} else {
		next = n.guessing.RecordNotice(p, &oldest, m.Data())
	}
	switch next {
	case bruteforce.Now:
		n.q.MarkPort(work.Notice, p)
	case bruteforce.Later:
		n.after(violation.CheckPause, work.Retry, work.OnPort(work.Notice, p))
	case bruteforce.Never:
	}
}
