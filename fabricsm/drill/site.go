package drill

import (
	"crypto/sha512"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/hcaconf"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/topospec"
)

// Tenant is the holder of a P_Key, and the hosts it is granted to at their places.
type Tenant struct {
	Name  string
	PKey  ib.PKey
	Hosts []string
}

// Shared is a partition of a service that several tenants use: its servers are full
// members, and the hosts of tenants limited ones.
type Shared struct {
	PKey             ib.PKey
	Servers, Clients []string
}

// SiteOptions say what a site is like. The zero value is a fat tree of two levels with the manager at "sm", hosts
// "h1" to "h8" and three of them to a leaf switch, each of which has a free port.
type SiteOptions struct {
	Netlist *netlist.Netlist
	Tenants []Tenant
	Shared  []Shared
	Fabric  sim.Options // Device is that of all nodes; default sim.Modern
	SM      sm.Config   // zero fields are set as for a secured fabric
	NoHosts bool        // inventory does not say where hosts are
	NoKeys  bool        // devices get no M_Keys
	Follows bool        // the service grants to a GUID wherever it is seen

	// Declared has the topology of the netlist declared and enforced: ports that differ from it are switched off.
	Declared bool
	Amend    func(*topospec.Revision) // changes the declared topology, nil: nothing

	// ClassKeys has devices get keys of management classes. SwitchesTalk has switches
	// be full members of the default partition, so that they can use the third.
	ClassKeys, SwitchesTalk bool

	FullClients bool     // the service makes every user of a shared partition a full member
	Guests      []string // hosts whose guests have virtual functions
	GuestSMPs   bool     // which have queue pair 0
	Firewalled  []string // hosts whose adapters keep subnet management from them
	CountedTIDs bool     // transaction ids of the manager count up

	Work testbed.Work // how long the manager takes over packets
	SA   *sa.Config   // how subnet administration answers hosts; nil: not at all

	Forgets  func(*sm.Fact) bool // facts that the store does not keep, nil: none
	NoEscrow bool                // there is no kit from which keys could come back
}

func (o *SiteOptions) Device() *sim.Device { return &o.Fabric.Device }

// Site is a fabric that was brought up and is at rest, with its manager.
type Site struct {
	*testbed.Stage
	Scene    *Scene
	Device   sim.Device // that of all nodes
	Options  SiteOptions
	tenants  []Tenant
	Victims  []*sim.Flow
	Begun    int           // in the events, of the last attack
	followed int           // of the events
	At       time.Duration // of the last attack

	Customers []*customer
	living    bool // customers have their turn
}

// SettleTime is how long a small fabric may take to settle.
const SettleTime = 30 * time.Second

// Site builds a fabric, starts the manager, puts the tenants into their partitions and waits until nothing is left to do.
// It switches off the controls that the options of the drill name.
func (s *Scene) Site(o SiteOptions) *Site {
	if o.Netlist == nil {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 9, Radix: 8, Leaves: 3, Spines: 2})
		s.Must(err)
		o.Netlist = l
	}
	if *o.Device() == (sim.Device{}) {
		*o.Device() = sim.Modern()
	}
	o.Fabric.LoseSilently = true
	if !o.NoKeys && o.SM.MKey.Source == nil {
		o.SM.MKey.Source, o.SM.MKey.Places = keys.Derived{Master: s.Master()}, keyplace.Seen
	}
	if o.ClassKeys {
		on := sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: 60}
		o.SM.ClassKeys = sm.ClassKeysConfig{Source: keys.Derived{Master: s.Master()}, CC: on, VS: on, N2N: on, FullSwitches: o.SwitchesTalk}
	}
	if o.Declared {
		s.Must(o.declare())
	}
	if o.SA != nil {
		o.numberTenants()
	}
	o.weaken(s.Options.Without)
	if o.NoKeys {
		o.SM.MKey = mkeys.Config{}
	}
	st, err := testbed.New(testbed.Options{Netlist: o.Netlist, Manager: "sm", Fabric: o.Fabric, SM: o.SM, SA: o.SA, Work: o.Work, Seed: s.Options.Seed, CountedTIDs: o.CountedTIDs, Forgets: o.Forgets})
	s.Must(err)
	site := &Site{Stage: st, Scene: s, Device: *o.Device(), Options: o, tenants: o.Tenants}
	site.configure(o.Firewalled, hcaconf.Config{SMPFirewall: true})
	site.configure(o.Guests, hcaconf.Config{VFs: GuestsOfHost, VFSMPs: o.GuestSMPs})
	s.sites = append(s.sites, site)
	if o.Follows {
		st.OnStep = site.follow
	}
	st.Start()
	in := sm.Intent{Revision: 1, Grants: site.grants()}
	if !o.NoHosts {
		in.Hosts = site.hostPlaces()
	}
	st.Want(in)
	s.Must(st.Settle(SettleTime))
	return site
}

// declare makes the netlist the declared topology, and enforces it.
func (o *SiteOptions) declare() error {
	r := declare(o.Netlist)
	if o.Amend != nil {
		o.Amend(r)
	}
	spec, err := topospec.Compile("drill", r)
	if err != nil {
		return err
	}
	o.SM.Topology = sm.TopologyConfig{Spec: spec, Mode: topospec.Enforce}
	if o.SM.MKey.Source != nil {
		o.SM.MKey.Places = keyplace.Declared
	}
	return nil
}

// Master is what keys are derived from. It is no secret: nothing real has them.
func (s *Scene) Master() keys.Master {
	known := sha512.Sum512([]byte("drill"))
	master, err := keys.NewMaster(known[:])
	s.Must(err)
	return master
}

// follow grants the memberships of a GUID at the place where it was seen last, as a service does that binds nothing to a
// place.
func (t *Site) follow() {
	for _, h := range t.Since(t.followed) {
		t.followed++
		seen, ok := h.Event.(*sm.PortPlaced)
		if !ok {
			continue
		}
		for _, g := range t.Intent().Grants {
			if g.GUID == seen.GUID && g.Place != seen.Place {
				t.Withdraw(g)
				t.Grant(sm.Grant{GUID: g.GUID, PKey: g.PKey, Place: seen.Place})
			}
		}
	}
}

// grants are those of the tenants, and of the users of shared partitions.
func (t *Site) grants() (out []sm.Grant) {
	for _, tn := range t.tenants {
		for _, h := range tn.Hosts {
			out = append(out, t.GrantOf(h, 1, tn.PKey))
		}
	}
	for _, sh := range t.Options.Shared {
		for _, h := range sh.Servers {
			out = append(out, t.GrantOf(h, 1, sh.PKey.Full()))
		}
		key := sh.PKey.Limited()
		if t.Options.FullClients {
			key = sh.PKey.Full()
		}
		for _, h := range sh.Clients {
			out = append(out, t.GrantOf(h, 1, key))
		}
	}
	return out
}

// hostPlaces are where the netlist has channel adapters.
func (t *Site) hostPlaces() (out []ib.Place) {
	for i := range t.List.Nodes {
		n := &t.List.Nodes[i]
		for num := 1; n.Type == ib.NodeCA && num < len(n.Ports); num++ {
			if pl := t.Place(n.Name, ib.PortNum(num)); !pl.IsZero() {
				out = append(out, pl)
			}
		}
	}
	return out
}

// tenantOf names the tenant of a host.
func (t *Site) tenantOf(host string) *Tenant {
	for i := range t.tenants {
		for _, h := range t.tenants[i].Hosts {
			if h == host {
				return &t.tenants[i]
			}
		}
	}
	return nil
}

// Flow starts traffic one way.
func (t *Site) Flow(from, to string, key ib.PKey) *sim.Flow {
	f, err := t.Fabric.Flow(Port(from), Port(to), key, sim.FlowOptions{EachSet: true})
	t.Scene.Must(err)
	return f
}

// Victim starts traffic between two hosts, both ways, that must not lose a packet
// until the drill ends: one with each thing that happens, and one after each
// write to any device. The key is that of the tenant of a.
func (t *Site) Victim(a, b string) {
	tenant := t.tenantOf(a)
	if tenant == nil {
		t.Scene.Must(fmt.Errorf("victim %s is in no tenant", a))
	}
	t.VictimOf(a, b, tenant.PKey)
}

// VictimOf is Victim with a P_Key that is said.
func (t *Site) VictimOf(a, b string, key ib.PKey) {
	t.Victims = append(t.Victims, t.Flow(a, b, key), t.Flow(b, a, key))
}

// VictimUntil is VictimOf until stop is called.
func (t *Site) VictimUntil(a, b string, key ib.PKey) (stop func()) {
	n := len(t.Victims)
	t.VictimOf(a, b, key)
	return func() {
		for _, f := range t.Victims[n : n+2] {
			f.Stop()
		}
	}
}

// count adds up what victims felt, and demands that they felt nothing.
func (s *Scene) count() {
	for _, t := range s.sites {
		s.countCustomers(t)
		for _, f := range t.Victims {
			n := f.Counts()
			s.Result.Victims.Sent += n.Sent
			s.Result.Victims.Lost += n.Lost
			s.Result.Victims.Strayed += n.Strayed
			s.Check(n.Sent > 0, "a victim sent nothing, so nothing is proven")
			s.Check(n.Lost+n.Strayed == 0, "a victim lost %d of %d packets, %d of them to others; the last one ended at %s port %d: %v",
				n.Lost+n.Strayed, n.Sent, n.Strayed, n.Last.At.Node, n.Last.At.Port, n.Last.Fate)
		}
	}
}

// Port is port 1 of a host.
func Port(host string) sim.Endpoint { return sim.Endpoint{Node: host, Port: 1} }

// LID is that of a host now.
func (t *Site) LID(host string) ib.LID { return t.Fabric.PortInfo(host, 1).LID }

// Attack records that an attack begins now: detection and isolation are counted from here.
func (t *Site) Attack() { t.Begun, t.At = t.Mark(), t.Now() }

// Unreported begins the failure text for an attack without a report.
const Unreported = "not reported"

// Reported waits until an event reports the attack, at most as long as within, and records its text and how long that took.
// The parameter what names the expected report.
func (t *Site) Reported(within time.Duration, what string, tells func(sm.Event) bool) bool {
	looked := t.Begun
	found := t.Until(within, func() bool {
		for _, h := range t.Since(looked) {
			looked++
			if tells(h.Event) {
				Note(&t.Scene.Result.Reported, "%s", []any{h.Event.String()})
				Longest(&t.Scene.Result.Detected, h.At-t.At)
				return true
			}
		}
		return false
	})
	return t.Scene.Check(found, Unreported+" %s within %v", what, within)
}

// Counted records a counter of a device that shows the attack.
func (t *Site) Counted(ok bool, format string, args ...any) {
	if t.Scene.Check(ok, "does not hold: "+format, args...) {
		Note(&t.Scene.Result.Reported, format, args)
		Longest(&t.Scene.Result.Detected, t.Now()-t.At)
	}
}

// Isolated waits until the attack has ended, at most as long as within, and records how long that took. The parameter what
// names the expected result.
func (t *Site) Isolated(within time.Duration, what string, holds func() bool) bool {
	if !t.Scene.Check(t.Until(within, holds), "not so within %v: %s", within, what) {
		return false
	}
	Longest(&t.Scene.Result.Isolated, t.Now()-t.At)
	return true
}

// Send sends one data packet from a host to another, with a P_Key that the sender claims, and returns the result.
func (t *Site) Send(from, to string, key ib.PKey) sim.Report {
	return t.Inject(from, sim.Data{SLID: t.LID(from), DLID: t.LID(to), PKey: key, DestQP: 2, Payload: 256})
}

// Inject sends a data packet from a host as it is.
func (t *Site) Inject(from string, d sim.Data) sim.Report {
	r, err := t.Fabric.Inject(Port(from), d)
	t.Scene.Must(err)
	t.Collect()
	return r
}

// Replug boots a node with other GUIDs, from the first node GUID on, like an attacker that forged them: it forgets its
// keys, and its links go down and come up.
func (t *Site) Replug(node string, guid ib.GUID) {
	t.Scene.Must(t.Fabric.PowerOff(node))
	t.Collect()
	t.Run(50 * time.Millisecond)
	t.Scene.Must(t.Fabric.SetGUIDs(node, guid, guid))
	t.Scene.Must(t.Fabric.PowerOn(node))
	t.Collect()
}

// Rename sets other GUIDs on a node while its cables are out for a moment: it does not boot, so that it keeps its
// configuration.
func (t *Site) Rename(node string, guid ib.GUID) {
	t.Pull(node)
	t.Run(50 * time.Millisecond)
	t.Scene.Must(t.Fabric.SetGUIDs(node, guid, guid))
	t.Scene.Must(t.Fabric.Restore(node, ib.NoPort))
	t.Collect()
}

// Pull pulls every cable out of a node.
func (t *Site) Pull(node string) {
	t.Scene.Must(t.Fabric.Unplug(node))
	t.Collect()
}

// Open reports whether the switch port at which the netlist has a host carries data.
func (t *Site) Open(host string) bool {
	at := t.SwitchPort(host, 1)
	return t.Fabric.PortInfo(at.Node, at.Port).PortState == ib.PortActive
}

// TenantKeys lists the P_Keys of tenants in the table of a port.
func (t *Site) TenantKeys(at sim.Endpoint) (out []ib.PKey) {
	for _, k := range t.Fabric.PKeys(at.Node, at.Port) {
		if k.Base() != ib.DefaultPKeyLimited {
			out = append(out, k)
		}
	}
	return out
}

// Is makes a test for events of one kind.
func Is[E sm.Event](holds func(E) bool) func(sm.Event) bool {
	return func(e sm.Event) bool {
		one, ok := e.(E)
		return ok && holds(one)
	}
}

// PKeyViolation returns a test for the event about a packet of a host that was dropped for its P_Key: it names the switch
// port in front of the host, and the P_Key.
func (t *Site) PKeyViolation(host string, keys ...ib.PKey) func(sm.Event) bool {
	place := t.Place(host, 1)
	return Is(func(e *violation.Violation) bool {
		return e.Kind == violation.BadPKey && e.Place == place && e.By == violation.ByPort && slices.Contains(keys, e.PKey)
	})
}

// Must ends the drill if there is an error.
func (t *Site) Must(err error) { t.Scene.Must(err) }

// WrongMKey returns a test for events about SMPs of a host with a wrong M_Key, or none.
func (t *Site) WrongMKey(host string) func(sm.Event) bool {
	place := t.Place(host, 1)
	return Is(func(e *violation.Violation) bool { return e.Kind == violation.BadMKey && e.Place == place })
}
