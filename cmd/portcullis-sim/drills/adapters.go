package drills

import (
	"context"
	"encoding/hex"
	"slices"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/register"
	"portcullis/api/locks"
	"portcullis/api/locks/lockkey"
	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// assuranceOff has a policy that does not judge the firmware of adapters, if the
// control is off.
func assuranceOff(s *drill.Scene) func(*attest.Policy) {
	return func(p *attest.Policy) {
		if s.Off(Assurance) {
			p.Assurance = attest.AssuranceNone
		}
	}
}

// lockOff has a policy that does not demand locks, if the control is off.
func lockOff(s *drill.Scene) func(*attest.Policy) {
	return func(p *attest.Policy) {
		if s.Off(RequireLock) {
			p.RequireLock = false
		}
	}
}

// customFirmware is T88.
func customFirmware(s *drill.Scene) {
	c := newCardSite(s, cardOptions{policy: assuranceOff(s), card: func(o *hcasim.Options) {
		o.Security = hcasim.Security{LifeCycle: register.GANonSecured}
	}})
	s.Tried("the adapter of %s is one that takes unsigned firmware, and was given root's own, which answers as genuine firmware does", suspect)
	c.mark()
	c.refused(c.provision(nil), attest.ReasonFirmware, proven, "whose adapter runs unsigned firmware")
}

// oldFirmware is T89.
func oldFirmware(s *drill.Scene) {
	c := newCardSite(s, cardOptions{
		policy: func(p *attest.Policy) {
			if !s.Off(FirmwareFloors) {
				p.FirmwareFloors = []attest.FirmwareFloor{{PSID: "MT_0000000838", Min: "28.43.1014"}}
			}
		},
		card: func(o *hcasim.Options) { o.Firmware = hcasim.Firmware{Major: 28, Minor: 39, SubMinor: 1002} },
	})
	s.Tried("root writes to the adapter of %s the maker's own firmware of two years ago, which is signed and has holes", suspect)
	c.mark()
	c.refused(c.provision(nil), attest.ReasonFirmware, proven, "whose adapter runs firmware with known holes")
}

// debugTokens is T90.
func debugTokens(s *drill.Scene) {
	c := newCardSite(s, cardOptions{policy: assuranceOff(s)})
	s.Tried("a debug session of one of the maker's tokens is opened in the adapter of %s, after the reset that the agent makes", suspect)
	c.mark()
	c.adapter.Look = func(context.Context) error {
		c.card.OpenSession(register.SessionDebug)
		c.facts = c.read()
		return nil
	}
	c.refused(c.provision(nil), attest.ReasonDebug, proven, "whose adapter is open to a debugger")
	if s.Off(Assurance) {
		return
	}
	s.Tried("the session is over, and the adapter runs debug firmware")
	c.again()
	c.install(func(o *hcasim.Options) { o.Firmware.Debug = true })
	c.refused(c.provision(nil), attest.ReasonDebug, proven, "whose adapter runs debug firmware")
}

// driftedSettings is T91.
func driftedSettings(s *drill.Scene) {
	c := newCardSite(s, cardOptions{policy: lockOff(s)})
	s.Tried("root keeps the settings of the adapter of %s as he likes them: each write of the agent is refused", suspect)
	c.unwritten(register.IDMNVDA, register.BadParameter, "settings for written that are not", "whose adapter has the settings that root wants")
	s.Check(c.probe() == attest.FirewallOpen, "nothing was to be proven: the adapter blocks subnet management packets")
	if !s.Off(RequireLock) {
		c.eachSetting()
	}
}

// eachSetting is the part of T91 in which settings differ one by one, now and after the
// next reset, on an adapter that is locked.
func (c *cardSite) eachSetting() {
	s := c.scene
	c.again()
	c.admitted(c.provision(nil))
	h := c.locked()
	s.Tried("on the adapter of %s, which is locked now, each setting that the site's profile demands is, alone, not as it should be", suspect)
	st := attest.Statement{HCAs: []attest.HCA{h}}
	s.Check(c.locks.Judge(&st) == nil, "settings are refused that are as they should be")
	found := 0
	for i := range h.Lock.Items {
		if !demanded(&h.Lock.Items[i]) {
			continue
		}
		changed := slices.Clone(h.Lock.Items)
		changed[i].Current, changed[i].Next = inverted(changed[i].Current), inverted(changed[i].Next)
		st.HCAs[0].Lock.Items = changed
		if no := c.locks.Judge(&st); s.Check(no != nil && no.Code == attest.ReasonLock, "the setting %v may be anything", &changed[i]) {
			found++
		}
	}
	s.Check(found > 0, "no settings were looked at")
	s.Stopped("the service refuses each of %d settings that is not as its profile demands", found)
}

// demanded reports whether the profile wants something of a setting, and does not only have it recorded.
func demanded(i *attest.Item) bool {
	return slices.ContainsFunc(profile.Default().Rules, func(r profile.Rule) bool {
		p, known := nvconfig.LookUp(r.Parameter)
		return known && r.Need != profile.Record && p.Item.Class.Family() == nvconfig.Class(i.Class).Family() && p.Item.Index == i.Index
	})
}

// inverted returns data in hex with each bit turned over.
func inverted(text string) string {
	b, err := hex.DecodeString(text)
	if err != nil {
		return text
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return hex.EncodeToString(b)
}

// skippedLock is T92.
func skippedLock(s *drill.Scene) {
	c := newCardSite(s, cardOptions{policy: lockOff(s)})
	s.Tried("root lets the settings of the adapter of %s be written, and the command that locks it not", suspect)
	c.unwritten(register.IDMLOCK, register.BadSystemState, "the adapter for locked", "whose adapter any program on the host can change")
}

// unwritten has the agent provision a host whose adapter refuses writes of a register. The agent must not take the write
// for done, and the service must refuse the host.
func (c *cardSite) unwritten(id register.ID, status register.Status, done, whom string) {
	s := c.scene
	c.mark()
	err := c.provision(func() {
		c.card.Inject(hcasim.Fault{Kind: hcasim.Refusal, ID: id, Method: register.Write, Status: status})
	})
	s.Check(c.failed != nil || s.Off(RequireLock), "the agent takes %s", done)
	c.refused(err, attest.ReasonLock, proven, whom)
}

// brokenLock is T93.
func brokenLock(s *drill.Scene) {
	c := newCardSite(s, cardOptions{card: func(o *hcasim.Options) { o.Traits.ForgetsLock = s.Off(AdapterLock) }})
	c.admitted(c.provision(nil))
	s.Tried("the tenant on %s resets the adapter, opens it with keys that he guesses, and writes SM_DISABLE off", suspect)
	c.mark()
	s.Must(c.restart())
	guesses := []ib.LockKey{ib.NewLockKey(1), ib.NewLockKey(0x1122334455667788), ib.NewLockKey(^uint64(0))}
	for _, k := range guesses {
		c.scene.Check(!c.try(k), "the adapter of %s is open to programs on the host", suspect)
	}
	at, known := nvconfig.LookUp("SM_DISABLE")
	s.Check(known, "no setting SM_DISABLE is known")
	off := nvconfig.Item{
		Header: nvconfig.Header{OverrideEnabled: true, ReadEnabled: true, Writer: nvconfig.WriterOurs, Address: nvconfig.GlobalItem(at.Item.Index)},
		Data:   make([]byte, 4),
	}
	_, err := bus{c.card}.Access(context.Background(), register.IDMNVDA, register.Write, off.Append(nil))
	s.Check(err != nil, "the adapter of %s takes settings of programs on the host", suspect)
	s.Must(c.restart())
	if s.Check(c.probe() == attest.FirewallBlocks, "%s sends subnet management packets again", suspect) {
		s.Stopped("the adapter refuses %d keys and the setting, before and after a reset: %v", len(guesses), err)
	}
	s.Tried("it is opened all the same, with the right key, and the host is provisioned again")
	c.card.LockAs(register.Locked, ib.NewLockKey(0x666))
	c.again()
	err = c.provision(nil)
	s.Check(c.failed != nil, "the agent opens an adapter that another site locked")
	c.refused(err, attest.ReasonUnread, proven, "whose adapter is locked with a key of another site")
}

// leakedKey is T94.
func leakedKey(s *drill.Scene) {
	c := newCardSite(s, cardOptions{})
	c.admitted(c.provision(nil))
	leaked, old := c.order.Lock, c.locked()
	s.Tried("the key that locks the adapter of %s leaks; the host is released and provisioned for the next tenant", suspect)
	c.mark()
	c.reassign("acme")
	if s.Off(LockEpochs) {
		_, err := c.store.Update(c.ctx(), func(tx *store.Tx) error {
			locks.Records().Delete(tx, c.adapter.Base.String())
			return nil
		})
		s.Must(err)
	}
	c.again()
	c.admitted(c.provision(nil))
	if s.Check(!c.try(leaked.Key), "the adapter of %s opens with the key that leaked", suspect) {
		s.Stopped("each provisioning locks with the key of another epoch: the one before opens nothing")
		other, err := c.root.Derive(c.adapter.Base+0x1000, lockkey.Epoch(c.order.Lock.Epoch))
		s.Must(err)
		s.Check(!c.try(other), "the adapter of %s opens with the key of another adapter", suspect)
	}
	c.told(proven, "lock.order", "ok")

	s.Tried("its agent is made to state the lock of the epoch before")
	c.again()
	m := c.hosts[suspect]
	m.Statement.HCAs = []attest.HCA{old}
	c.refused(c.attest(m), attest.ReasonLock, proven, "whose adapter may be locked with a key that leaked")
}

// lostKeys is T95.
func lostKeys(s *drill.Scene) {
	c := newCardSite(s, cardOptions{})
	c.admitted(c.provision(nil))
	c.again()
	c.admitted(c.provision(nil))
	view, err := c.locks.Show(c.ctx(), c.adapter.Base)
	s.Must(err)
	s.Tried("the store is lost, with all that is known of locks; the adapter of %s is locked with the key of epoch %d", suspect, view.Epoch)
	c.mark()
	_, err = c.store.Update(c.ctx(), func(tx *store.Tx) error {
		locks.Records().Delete(tx, c.adapter.Base.String())
		return nil
	})
	s.Must(err)
	root := c.root
	if s.Off(LockDerivation) {
		root, err = lockkey.NewRoot([]byte("keys drawn at random, kept nowhere else"))
		s.Must(err)
	}
	const epochs = 8
	opened := lockkey.Epoch(0)
	for e := lockkey.Epoch(1); e <= epochs && opened == 0; e++ {
		k, err := root.Derive(c.adapter.Base, e)
		s.Must(err)
		if c.try(k) {
			opened = e
			c.Counted(lockkey.Check(k) == view.Check, "portcullis lock show, kept from before: the check value of the key is that of epoch %d", e)
		}
	}
	if s.Check(opened != 0, "the adapter of %s is locked for ever", suspect) {
		s.Stopped("keys are derived from the sealed root, the burned-in GUID and the epoch: that of epoch %d opens the adapter", opened)
	}
}

// blindAgent is T96.
func blindAgent(s *drill.Scene) {
	c := newCardSite(s, cardOptions{policy: assuranceOff(s)})
	s.Tried("the agent on %s cannot read which firmware waits for the next reset: the query fails, as it does under kernel lock-down", suspect)
	c.mark()
	c.adapter.Look = func(context.Context) error {
		c.card.Inject(hcasim.Fault{Kind: hcasim.Refusal, ID: register.IDMCQI, Method: register.Read, Status: register.BadSystemState})
		c.facts = c.read()
		return nil
	}
	c.refused(c.provision(nil), attest.ReasonUnread, proven, "of whose adapter it is unknown what it will run")
}

// foreignProcessor is T97: an attacker who owns a DPU's own processor needs no more of the host. Nothing attests that
// processor, so adapters that have one are not let in.
func foreignProcessor(s *drill.Scene) {
	c := newCardSite(s, cardOptions{
		policy: func(p *attest.Policy) { p.AcceptDPU = s.Off(NoDPU) },
		card: func(o *hcasim.Options) {
			o.Identity.DeviceID, o.Identity.HWDevID = 0xA2DC, 0x21C // BlueField-3
		},
	})
	s.Tried("the adapter of %s is a DPU, on whose own processor the tenant is root; the host and its boot are as they must be", suspect)
	c.mark()
	c.refused(c.provision(nil), attest.ReasonDPU, proven, "whose adapter has a processor that nothing attests")
}
