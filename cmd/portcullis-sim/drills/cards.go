package drills

import (
	"context"
	"crypto/sha512"
	"errors"
	"time"

	"portcullis/agent/hca"
	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/register"
	"portcullis/agent/hca/sysfs"
	"portcullis/agent/lock"
	"portcullis/api/admission"
	"portcullis/api/locks"
	"portcullis/api/locks/lockkey"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/hcaconf"
	"portcullis/firmware/nvconfig/profile"
)

// cardSite is a site where the suspect has a simulated adapter, which its agent
// reads and locks as the service orders, and which the fabric obeys.
type cardSite struct {
	*evidenceSite
	card    *hcasim.Card
	adapter *lock.Adapter
	locks   *locks.Service
	root    lockkey.Root
	order   *lock.Order  // the last
	result  *lock.Result // of it
	failed  error        // of it, nil: the adapter is locked and proven so
	facts   attest.HCA   // read while the adapter was open
}

// cardOptions say how a site differs from one that demands everything.
type cardOptions struct {
	policy func(*attest.Policy)
	card   func(*hcasim.Options)
}

// newCardSite makes a site whose adapters are locked with plain writes. Firmware is compared with what adapters report of
// themselves (G0): the site keeps no images.
func newCardSite(s *drill.Scene, o cardOptions) *cardSite {
	c := &cardSite{}
	secret := sha512.Sum512([]byte("lock keys of drills"))
	var err error
	c.root, err = lockkey.NewRoot(secret[:])
	s.Must(err)
	c.evidenceSite = newEvidenceSite(s, evidenceOptions{
		trusted: true,
		policy: func(p *attest.Policy) {
			p.Assurance = attest.G0
			if o.policy != nil {
				o.policy(p)
			}
		},
		admission: func(ao *admission.Options) {
			c.locks, err = locks.New(locks.Options{Store: ao.Store, Root: c.root, Now: ao.Now})
			s.Must(err)
			ao.Locks = c.locks
		},
	})
	c.install(o.card)
	return c
}

// install puts a card behind the suspect's adapter.
func (c *cardSite) install(change func(*hcasim.Options)) {
	node := c.List.Find(suspect).GUID
	o := hcasim.ConnectX7(node, c.GUID(suspect, 1))
	if change != nil {
		change(&o)
	}
	c.card = hcasim.New(o)
	c.scene.Must(c.Fabric.Install(suspect, modelled{c.card}))
	c.adapter = &lock.Adapter{
		Name: suspect, Base: node, PSID: o.Identity.PSID, Ports: []ib.PortNum{1}, Access: bus{c.card},
		Reset: func(context.Context) error { return c.restart() },
		Probe: func(context.Context, ib.PortNum) (attest.Firewall, error) { return c.probe(), nil },
		Look:  func(context.Context) error { c.facts = c.read(); return nil },
		Wait:  func(context.Context, time.Duration) error { return nil },
	}
	c.Collect()
	c.sync()
}

// modelled is a card as the fabric sees it.
type modelled struct{ card *hcasim.Card }

// Boot implements hcaconf.Firmware.
func (m modelled) Boot() hcaconf.Config {
	m.card.Reset()
	return hcaconf.Config{SMPFirewall: m.card.SMPFirewall(), VFs: uint8(min(m.card.VFs(), 255))}
}

// restart resets the suspect's adapter, also for the fabric.
func (c *cardSite) restart() error {
	err := c.Fabric.Reboot(suspect)
	c.Collect()
	return err
}

// probe returns the fate of a subnet management packet of the suspect: that of the setting that the fabric obeys.
func (c *cardSite) probe() attest.Firewall {
	if c.card.SMPFirewall() {
		return attest.FirewallBlocks
	}
	return attest.FirewallOpen
}

// bus carries registers to a card, as the kernel would.
type bus struct{ card *hcasim.Card }

// Access implements hca.Access.
func (b bus) Access(_ context.Context, id register.ID, m register.Method, data []byte) ([]byte, error) {
	return b.card.Register(id, m, data)
}

// noImages is a site that refuses no firmware and has no images: adapters are judged by the policy of the service.
type noImages struct{}

func (noImages) Refuse(hca.Claim) []string { return nil }

func (noImages) Image(string, hca.Version) (image hca.Image, ok bool, why string) {
	return image, false, "the site keeps no images"
}

// read returns the adapter's report of itself, as the agent states it.
func (c *cardSite) read() attest.HCA {
	node := c.List.Find(suspect).GUID
	d := hca.ReadDevice(c.ctx(), nil, &sysfs.RDMA{
		Name: "mlx5_0", NodeGUID: node, SystemImageGUID: node, Type: "MT4129",
		Ports: []sysfs.Port{{Num: 1, LinkLayer: sysfs.LinkInfiniBand, GUID: c.GUID(suspect, 1)}},
	}, bus{c.card}, hca.FromCard)
	return d.Statement(d.Judge(noImages{}))
}

// provision has the suspect's agent do all that it does before hand-over: attest its
// boot, have its adapter locked, attest again, hand over. meanwhile, if there, is what
// root does to the adapter just before it is locked. The error is the service's.
func (c *cardSite) provision(meanwhile func()) error {
	m := c.hosts[suspect]
	m.Statement.HCAs = []attest.HCA{c.read()}
	m.Statement.CollectedAt = c.clock().Truncate(time.Second)
	request := m.Request()
	request.Locks = true
	ses, err := c.admission.Attestation().OpenSession(c.ctx(), request, c.from)
	if err != nil {
		return err
	}
	ev, err := m.Answer(ses, c.channel)
	c.scene.Must(err)
	r, err := c.admission.Attestation().SubmitEvidence(c.ctx(), ses.ID, c.channel, ev)
	if err != nil {
		return err
	}
	if r.LockTicket == "" { // the service demands no lock
		return c.seal(m, ses, r.Seal)
	}
	c.ordered(r.LockTicket)
	if meanwhile != nil {
		meanwhile()
	}
	c.result, c.failed = c.adapter.Lock(c.ctx(), c.order)
	c.card.Heal()
	m.Statement.HCAs = []attest.HCA{c.locked()}
	return c.attest(m)
}

// ordered asks for the order for the suspect's adapter.
func (c *cardSite) ordered(ticket string) {
	node := c.List.Find(suspect).GUID
	orders, err := c.locks.Orders(c.ctx(), ticket, v1.LockRequest{Adapters: []v1.LockAdapter{{NodeGUID: node, PSID: c.adapter.PSID, Ports: 1}}})
	c.scene.Must(err)
	o := orders.Orders[0]
	c.order = &lock.Order{Base: o.NodeGUID, Profile: profile.Default(), Lock: heldKey(o.Lock)}
	for _, k := range o.Held {
		c.order.Held = append(c.order.Held, heldKey(k))
	}
}

func heldKey(k v1.LockKey) lock.Key { return lock.Key{Epoch: uint64(k.Epoch), Key: k.Key.Key} }

// locked is the adapter as it was read while it was open, with what was proven of its
// lock.
func (c *cardSite) locked() attest.HCA {
	h := c.facts
	if h.Name == "" {
		h = c.read()
	}
	h.Lock = c.result.Lock
	for i := range h.Ports {
		h.Ports[i].Firewall = c.result.Firewall[h.Ports[i].Num]
	}
	return h
}

// admitted demands that the suspect, which is as it should be now, is admitted.
func (c *cardSite) admitted(err error) {
	c.scene.Must(errors.Join(c.failed, err))
	c.scene.Check(c.phase(suspect) == v1.PhaseAdmitted, "%s, which is as it should be, is %s", suspect, c.phase(suspect))
}

// again has the suspect leave its cluster, come back and boot again.
func (c *cardSite) again() {
	c.reassign("acme")
	m := c.hosts[suspect]
	m.Reboot()
	c.facts, c.result, c.failed = attest.HCA{}, nil, nil
	c.scene.Must(c.restart())
	c.sync()
}

// try writes the lock with a key, and reports whether the adapter is open then.
func (c *cardSite) try(k ib.LockKey) bool {
	// Whether it is refused does not count: only its state afterwards counts.
	_, _ = hca.Write(c.ctx(), bus{c.card}, register.MLOCK{State: register.Unlocked, Key: k})
	return c.card.LockState() == register.Unlocked
}
