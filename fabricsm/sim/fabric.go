package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sim/hcaconf"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/perf"
	"portcullis/fabricsm/sim/sham"
)

// ErrUnknownNode means that the netlist has no node of that name or
// description.
var ErrUnknownNode = errors.New("unknown node")

// Options change how a fabric behaves.
type Options struct {
	// Seed determines every random choice.
	Seed uint64

	// LoseSilently makes a request that reaches no receiver vanish, as on real hardware. Otherwise it returns to its sender
	// at once, marked undelivered, as with ibsim.
	LoseSilently bool

	// LinearCap is the number of LIDs a switch can forward, 49,152 by default.
	LinearCap uint16

	// MulticastCap is the number of multicast LIDs a switch can forward, 1024 by
	// default; a multiple of 32.
	MulticastCap uint16

	// MulticastTop enables MulticastFDBTop in switches, above which they drop.
	MulticastTop bool

	// SLtoVLWildcard lets one Set program the SL-to-VL tables of all pairs of
	// ports of a switch.
	SLtoVLWildcard bool

	// Training is how long a link trains before it is up, in the time of
	// Advance. The links of a new fabric are up at once.
	Training time.Duration

	// Device is the device of all nodes without their own (SetDevice).
	Device Device
}

// Fabric is a simulated fabric. Its methods may be called concurrently; they
// exclude each other.
type Fabric struct {
	mu sync.Mutex
	network
}

// network is all that a fabric consists of, and moves packets through it. It knows no lock: the Fabric, its stations and
// its flows hold theirs while they use it.
type network struct {
	opts     Options
	nodes    []*node // in the order of the netlist
	byName   map[string]*node
	stations []*Station // by slot, nil where free
	hosts    []*HostPort
	rng      *rand.Rand
	now      time.Duration // since the start
	later    schedule
	queue    []flight // packets that wait to be moved
	dirty    []*inbox // with new packets since the last settle
	stats    Stats
	sets     map[string]*Sets // by the sender's node
	fault    Fault            // of nodes without one of their own
	faults   int              // that do anything, of nodes and of the fabric
	timed    int              // those of them whose effects wait for time
	flows    []*Flow
	floods   []*Flood
	nextTID  uint32

	running   bool   // the links of the netlist are up
	trainings uint64 // of links, begun
}

// Stats counts packets by their result.
type Stats struct {
	Sent        uint64 // by stations
	Received    uint64 // put into inboxes
	Answered    uint64 // by the agents of nodes
	Undelivered uint64 // requests that reached no receiver
	NoRoute     uint64 // dropped by a switch whose table has no port for the LID
	Looped      uint64 // dropped after maxHops switches
	LinkDown    uint64 // dropped at a port that cannot carry them
	Malformed   uint64 // dropped for breaking a rule of the standard
	Lost        uint64 // by a Fault
	VL15Dropped uint64 // SMPs dropped at a port whose buffers were full
	Barred      uint64 // MADs of a host, or for it, that its adapter kept: see hcaconf.Config and PowerOff
	Overflowed  uint64 // dropped because an inbox was full
	Traps       uint64 // sent by agents, repetitions included

	DataDelivered uint64 // data packets that reached their receiver
}

// node is a switch, CA or router.
type node struct {
	fabric *network
	sw     *forwarding // nil: not a switch
	ports  []*port     // by number; [0] is nil but for a switch

	name        string
	description mad.NodeDescription
	typ         ib.NodeType
	guid        ib.GUID
	systemGUID  ib.GUID
	vendor      uint32
	device      uint16
	fault       *Fault      // nil: that of the fabric
	own         *Device     // nil: that of the fabric
	sm          *mad.SMInfo // of a subnet manager that the fabric itself plays, nil: none
	traps       []pendingTrap
	smps        smpQueue
	keyed       bool             // a port of it has an M_Key
	off         bool             // has no power
	hca         hcaconf.Settings // of a channel adapter
	sham        *sham.Fabric
}

// port is one port of a node.
type port struct {
	// The fields that every packet on its way uses come first, in one cache line.
	node     *node
	peer     *port // the other end of the link while it is up
	num      ib.PortNum
	counters perf.Counters

	guid ib.GUID
	link netlist.Link

	noFDR10, atFDR10 bool // FDR10 is disabled; the link was trained to it

	cable *port // where the netlist's cable ends; nil: none
	was   *port // where its last cable ended that was pulled out

	info     mad.PortInfo
	image    [mad.DataSize]byte // info as on the wire
	nodeInfo [mad.DataSize]byte // NodeInfo as seen through this port

	training  uint64     // the number of its last training
	mkeys     guard.Keys // of an end port; the current one is info.MKey
	mkeyLease guard.Lease
	notices   noticeQueue
	classes   [keyClasses]*guard.Agent // of an end port, made at the first request

	pkeys  pkeyTable
	guids  guidTable
	slToVL [][slToVLSize]byte // by input port of a switch; one for others
	vlArb  [4][mad.DataSize]byte
	held   int // SMPs in its buffers

	host       *HostPort // that has this port, nil: none
	reregister bool      // it was requested since the last event for the host
}

// New makes a fabric of the default options in which every cable of the list
// is plugged in: its ports are in state Init.
func New(list *netlist.Netlist) *Fabric { return NewWith(list, Options{}) }

// NewWith makes a fabric like New.
func NewWith(list *netlist.Netlist, o Options) *Fabric {
	if o.MulticastCap == 0 {
		o.MulticastCap = defaultMulticast
	}
	if o.LinearCap == 0 {
		o.LinearCap = defaultLinearCap
	}
	f := &Fabric{network: network{opts: o, sets: make(map[string]*Sets), byName: make(map[string]*node, len(list.Nodes)), rng: rand.New(rand.NewPCG(o.Seed, 0))}}
	for i := range list.Nodes {
		n := f.newNode(&list.Nodes[i])
		f.nodes = append(f.nodes, n)
		f.byName[n.name] = n
	}
	for i := range list.Nodes {
		for num := 1; num < len(list.Nodes[i].Ports); num++ {
			p := &list.Nodes[i].Ports[num]
			if far := f.byName[p.Peer]; far != nil && int(p.PeerPort) < len(far.ports) {
				f.nodes[i].ports[num].cable = far.ports[p.PeerPort]
			}
		}
	}
	for i, n := range f.nodes {
		n.reset(&list.Nodes[i])
	}
	for _, n := range f.nodes {
		n.trainAll()
	}
	f.running = true
	return f
}

func (f *network) newNode(l *netlist.Node) *node {
	n := &node{
		fabric: f, name: l.Name, description: mad.MakeNodeDescription(l.Description), typ: l.Type,
		guid: l.GUID, systemGUID: l.SystemImageGUID, vendor: l.VendorID, device: l.DeviceID,
		ports: make([]*port, len(l.Ports)),
	}
	if n.typ == ib.NodeSwitch {
		n.sw = &forwarding{enhancedPort0: l.EnhancedPort0}
	}
	for num := range l.Ports {
		if num == 0 && n.sw == nil {
			continue
		}
		n.ports[num] = &port{node: n, num: ib.PortNum(num), guid: l.PortGUID(ib.PortNum(num)), link: l.Ports[num].Link}
	}
	return n
}

// find returns the node with that name or, failing that, description; "" is the first of the netlist. Called with mu held.
func (f *network) find(name string) (*node, error) {
	if name == "" && len(f.nodes) > 0 {
		return f.nodes[0], nil
	}
	if n := f.byName[name]; n != nil {
		return n, nil
	}
	for _, n := range f.nodes {
		if n.description.String() == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%w: %q is not in the netlist", ErrUnknownNode, name)
}

// findPort is find for a port.
func (f *network) findPort(name string, num ib.PortNum) (*port, error) {
	n, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if int(num) >= len(n.ports) || n.ports[num] == nil {
		return nil, fmt.Errorf("%q has no port %d", name, num)
	}
	return n.ports[num], nil
}

// Stats returns the counters.
func (f *Fabric) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// endPort is the port whose addresses hold for p: port 0 of a switch, the port
// itself of other nodes.
func (p *port) endPort() *port {
	if p.node.sw != nil {
		return p.node.ports[0]
	}
	return p
}

// isEnd reports whether a port has a LID: whether it is not an external port of a switch.
func (p *port) isEnd() bool { return p.node.sw == nil || p.num == 0 }

// owns reports whether lid is one of the 2^LMC LIDs of an end port.
func (p *port) owns(lid ib.LID) bool {
	base := p.info.LID
	return base != 0 && lid >= base && int(lid) < int(base)+1<<p.info.LMC
}
