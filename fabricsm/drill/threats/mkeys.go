package threats

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"filippo.io/age"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/escrow"
)

// mkeyDrills are those of the life of an M_Key, T44 to T52.
func mkeyDrills() []drill.Drill {
	return []drill.Drill{
		{ID: "T44", Threat: "guess M_Keys", Play: guessedKeys},
		{ID: "T45", Threat: "compute M_Keys from what is public, or use those that managers have by default", Play: computedKeys},
		{ID: "T46", Threat: "read keys from files, backups, logs or answers", Needs: drill.NeedsService},
		{ID: "T47", Threat: "take a device away that has a key", Play: departedDevice},
		{ID: "T48", Threat: "crash the subnet manager while keys change, so that devices are lost", Play: crashedRotation},
		{ID: "T49", Threat: "restart a device while keys change, so that it stays open", Play: restartedDevice},
		{ID: "T50", Threat: "lose all keys", Play: lostKeys},
		{ID: "T51", Threat: "have protection switched off for the sake of a tool", Play: lentKey},
		{ID: "T52", Threat: "have tools fail because keys change right after the start", Play: earlyRotation},
	}
}

// hourly is a site whose keys change each hour.
func hourly() drill.SiteOptions { return rotating(time.Hour) }

// rotating is a site whose keys change once in each period.
func rotating(period time.Duration) drill.SiteOptions {
	return drill.SiteOptions{
		Tenants: []drill.Tenant{{Name: "A", PKey: drill.KeyA, Hosts: []string{"h1", "h2"}}, {Name: "B", PKey: drill.KeyB, Hosts: []string{"h3", "h6"}}},
		SM:      sm.Config{MKey: mkeys.Config{Rotation: keys.RotationConfig{Period: period, Grace: 5 * time.Minute, Window: 4}}},
	}
}

// guessedKeys is T44.
func guessedKeys(s *drill.Scene) {
	o := drill.SiteOptions{Tenants: drill.TwoTenants(), Declared: true}
	o.Fabric.Device = sim.Modern()
	o.Fabric.Device.NoticeQueue = 16
	o.SM.Health.Guessing = health.Rule{Count: 10, Window: 10 * time.Minute, Action: health.Disable}
	t := s.Site(o)
	t.Victim("h1", "h5")
	h7, leaf := t.Attacker("h7"), t.SwitchPort("h1", 1).Node
	const guesses = 2000
	s.Tried("h7 tries %d M_Keys on the switch of h1, 100 a second, and comes back whenever it is let in; on devices that queue no notices it has others accused of that", guesses)
	t.Attack()
	answered := 0
	guess := func(i int) {
		if h7.Ask(drill.SMP{To: leaf, Attr: mad.AttrPortInfo, Key: ib.NewMKey(uint64(i)*0x9E3779B97F4A7C15 + s.Seed())}) != nil {
			answered++
		}
		t.Run(10 * time.Millisecond)
	}
	const bait = 40
	for i := range bait {
		guess(i)
	}
	guid, place := t.GUID(leaf, 0), t.Place("h7", 1)
	cut := func(e *health.Unhealthy) bool {
		return e.Condition == health.Guessing && e.Place == place && e.Action == health.Disable
	}
	t.Reported(10*time.Second, "who it was", t.WrongMKey("h7"))
	t.Reported(10*time.Second, "that a host guesses", drill.Is(func(e *violation.KeyGuessing) bool { return e.GUID == guid }))
	t.Reported(10*time.Second, "that h7 is cut off for it", drill.Is(cut))
	if t.Isolated(10*time.Second, "h7 is switched off", func() bool { return isOff(t, place) }) {
		s.Stopped("a key has 64 bits; who guesses is switched off after ten tries, for ever longer")
	}
	reached := t.Violations(leaf)
	for i := bait; i < guesses; i++ {
		guess(i)
	}
	t.Counted(t.Violations(leaf) >= 10, "MKeyViolations of %s is %d", leaf, t.Violations(leaf))
	s.Check(t.Violations(leaf) == reached, "%d more guesses reached %s while h7 was to be off", t.Violations(leaf)-reached, leaf)
	s.Check(answered == 0, "%d of %d guesses were answered", answered, guesses)
	s.Must(t.Settle(drill.SettleTime))
	accusedOfGuessing(s)
}

// accusedOfGuessing is the part of T44 in which a host has others accused: it guesses
// by LID, in the name of h1, and forges for each guess a trap that traces it to h1.
func accusedOfGuessing(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants(), Declared: true})
	t.Victim("h1", "h5")
	at := t.SwitchPort("h1", 1)
	leaf, manager := t.Fabric.PortInfo(at.Node, 0).LID, t.LID("sm")
	t.Attack()
	for i := range 200 {
		key := ib.NewMKey(uint64(i)*0x9E3779B97F4A7C15 + s.Seed())
		g := sim.Forged{SLID: t.LID("h1"), DLID: leaf}
		mad.NewSMP(&g.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, TID: ib.TID(i + 1)}, nil, key)
		n := sim.Forged{SLID: leaf, DLID: manager}
		mad.NewSMP(&n.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(1000 + i)}, nil, ib.MKey{})
		drill.With(s, &mad.Trap256{
			NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: mad.TrapBadMKey, IssuerLID: leaf},
			LID:          ib.PermissiveLID, DrSLID: ib.PermissiveLID, Method: mad.MethodGet, AttributeID: mad.AttrPortInfo, MKey: key,
			DRNotice: true, DRHopCount: 1, DRReturnPath: [30]ib.PortNum{1: at.Port},
		})(n.MAD.Data())
		s.Must(t.Fabric.InjectMAD(drill.Port("h7"), g))
		s.Must(t.Fabric.InjectMAD(drill.Port("h7"), n))
		t.Collect()
		t.Run(10 * time.Millisecond)
	}
	guid := t.GUID(at.Node, 0)
	t.Reported(time.Minute, "that a host guesses", drill.Is(func(e *violation.KeyGuessing) bool { return e.GUID == guid }))
	t.Run(time.Minute)
	s.Check(!isOff(t, t.Place("h1", 1)), "h1 is switched off for what h7 did in its name")
	s.Must(t.Settle(drill.SettleTime))
}

// computedKeys is T45.
func computedKeys(s *drill.Scene) {
	t := s.Site(drill.SiteOptions{Tenants: drill.TwoTenants()})
	t.Victim("h1", "h5")
	h7 := t.Attacker("h7")
	s.Tried("h7 tries 0x1, all ones, and each GUID of the fabric and the eight numbers after it, on every device")
	list := []uint64{1, ^uint64(0), 0x0123456789ABCDEF}
	for _, name := range t.Fabric.Nodes() {
		for i := range uint64(9) {
			list = append(list, uint64(t.List.Find(name).GUID)+i)
		}
	}
	t.Attack()
	opened := 0
	for _, to := range t.Fabric.Nodes() {
		for _, key := range list {
			if to != "h7" && h7.Ask(drill.SMP{To: to, Attr: mad.AttrPortInfo, Key: ib.NewMKey(key)}) != nil {
				opened++
				s.Check(false, "%s opens to a key that is public", to)
				break
			}
		}
	}
	t.Reported(5*time.Second, "SMPs with a wrong M_Key", t.WrongMKey("h7"))
	for _, key := range []uint64{0, 1, ^uint64(0), 0x0101010101010101} {
		s.Check(keys.Check(keys.New(key)) != nil, "%#x passes as a new key", key)
	}
	_, err := keys.NewMaster(make([]byte, keys.MasterSize))
	s.Check(err != nil, "a master of zeros is taken")
	if opened == 0 {
		s.Stopped("keys are derived from 64 random bytes, or random; what can be guessed is refused as a key, and as a master")
	}
}

// onSavedKeys demands that each device is on the one key that was saved for it.
func onSavedKeys(t *drill.Site, when string) {
	for _, rec := range sm.KeyRecords(t.Facts()) {
		for _, name := range t.Fabric.Nodes() {
			if rec.Kind != keys.MKey || endGUID(t, name) != rec.GUID {
				continue
			}
			t.Scene.Check(rec.Pending.IsZero(), "%s: the change of the key of %s has no end", when, name)
			t.Scene.Check(!t.KeyOf(name).IsZero() && rec.Current.Key.M() == t.KeyOf(name), "%s: %s is not on the key that is saved", when, name)
		}
	}
}

// endGUID is that of the port which has the M_Key of a node.
func endGUID(t *drill.Site, node string) ib.GUID {
	if n := t.List.Find(node); n.Type == ib.NodeSwitch {
		return n.GUID
	}
	return t.GUID(node, 1)
}

// setsKey reports whether a request writes an M_Key.
func setsKey(r *sm.Request) bool {
	var pi mad.PortInfo
	return r.MAD.Method() == mad.MethodSet && r.MAD.Attr() == mad.AttrPortInfo && mad.Decode(r.MAD.Data(), &pi) == nil && !pi.MKey.IsZero()
}

// crashedRotation is T48.
func crashedRotation(s *drill.Scene) {
	const steps, period = 28, 10 * time.Minute // a longer one only takes longer to begin
	s.Tried("the subnet manager is killed at each of the first %d writes of keys of a rotation, before and after the device got it, and started again", steps)
	for step := range 2 * steps {
		t := s.Site(rotating(period))
		t.Victim("h1", "h2")
		writes, crashed := 0, false
		t.Run(period - time.Minute)
		t.OnSend = func(r *sm.Request) bool {
			if crashed || !setsKey(r) {
				return false
			}
			if writes++; writes <= step/2 {
				return false
			}
			crashed = true
			if step%2 == 1 {
				deliverOnly(t, r)
			}
			t.Crash()
			return true
		}
		t.Attack()
		if !s.Check(t.Until(10*time.Minute, func() bool { return crashed }), "keys were not written %d times, so nothing is proven", step/2+1) {
			return
		}
		t.OnSend = nil
		t.Run(10 * time.Second)
		t.Start()
		t.Want(t.Intent())
		t.Reported(20*time.Minute, "that keys have changed, after the restart", drill.Is(func(e *keyevent.KeysRotated) bool { return e.Failed == 0 }))
		s.Must(t.Settle(drill.SettleTime))
		onSavedKeys(t, fmt.Sprintf("killed at write %d", step/2+1))
		if len(s.Result.Failures) > 0 {
			return
		}
	}
	if len(s.Result.Failures) == 0 {
		s.Stopped("both keys are saved before a device gets one, so that two Gets at most show which it is on; the rotation goes on")
	}
}

// deliverOnly delivers a request to its device, and drops the answer.
func deliverOnly(t *drill.Site, r *sm.Request) {
	t.Scene.Must(t.Fabric.InjectMAD(drill.Port("sm"), forgedOf(r)))
}

// restartedDevice is T49.
func restartedDevice(s *drill.Scene) {
	s.Tried("h7 and leaf3 lose power for a moment when the 1st, 5th and 9th key of a rotation is written: they come back without an M_Key")
	for _, node := range []string{"h7", "leaf3"} {
		for _, step := range []int{1, 5, 9} {
			const period = 30 * time.Minute // the next rotation begins after this one is judged
			t := s.Site(rotating(period))
			t.Victim("h1", "h2")
			t.Run(period - time.Minute)
			writes := 0
			t.OnSend = func(r *sm.Request) bool {
				if setsKey(r) {
					writes++
				}
				return false
			}
			t.Until(10*time.Minute, func() bool { return writes >= step })
			t.OnSend = nil
			t.Attack()
			s.Must(t.Fabric.Reboot(node))
			s.Check(t.KeyOf(node).IsZero(), "%s has kept its M_Key, so nothing is proven", node)
			t.Collect()
			guid := t.GUID("h7", 1)
			t.Reported(time.Minute, "that h7 was away", drill.Is(func(e *sm.PortPlaced) bool { return e.GUID == guid }))
			if t.Isolated(time.Minute, "the device has an M_Key again", func() bool { return !t.KeyOf(node).IsZero() }) {
				s.Stopped("a device that comes back at its place without a key gets one before anything else is written")
			}
			t.Run(20 * time.Minute)
			s.Must(t.Settle(drill.SettleTime))
			onSavedKeys(t, "restarted "+node)
		}
	}
}

// lostKeys is T50.
func lostKeys(s *drill.Scene) {
	t := s.Site(hourly())
	t.Victim("h1", "h2")
	t.Run(90 * time.Minute)
	s.Tried("all records of keys are lost after a rotation; there is an escrow kit, and who can open it")
	t.Attack()
	before := t.State()
	t.Crash()
	t.Restore(recovered(t))
	t.Start()
	t.Want(t.Intent())
	s.Check(t.Settle(5*time.Minute) == nil, "the subnet manager does not settle with the keys of the kit")
	if list := drill.Changed(before, t.State()); len(list) > 0 {
		s.Check(false, "the recovery changed %q", list)
	}
	g := t.GrantOf("h4", 1, drill.KeyA)
	t.Grant(g)
	t.Reported(time.Minute, "that h4 is a member of tenant A: devices obey again", drill.Is(func(e *sm.MembershipApplied) bool { return e.GUID == g.GUID && e.PKey == drill.KeyA }))
	s.Check(t.Send("h1", "h4", drill.KeyA).Fate == sim.Delivered, "h4 is no member of tenant A: devices do not obey")
	if len(s.Result.Failures) == 0 {
		s.Stopped("the kit returns each device's key, without a write")
	}
}

// recovered returns the saved facts, with the keys from an escrow kit that its recipient opened.
func recovered(t *drill.Site) (out []sm.Fact) {
	for _, f := range t.Facts() {
		if f.Key == nil {
			out = append(out, f)
		}
	}
	if t.Options.NoEscrow {
		return out
	}
	s := t.Scene
	check, err := vault.DrawCheckKey(rand.NewChaCha8([32]byte{50, byte(s.Seed())}))
	s.Must(err)
	id, err := age.GenerateX25519Identity()
	s.Must(err)
	var kit bytes.Buffer
	s.Must(escrow.Create(&kit, &escrow.Contents{
		Fabric: "drill", Made: testbed.Epoch.Add(t.Now()), Master: s.Master(), Check: check, Records: sm.KeyRecords(t.Facts()),
	}, id.Recipient()))
	opened, err := escrow.Open(&kit, id)
	s.Must(err)
	for _, rec := range opened.Records {
		out = append(out, sm.KeyFactOf(rec))
	}
	return out
}

// earlyRotation is T52.
func earlyRotation(s *drill.Scene) {
	t := s.Site(hourly())
	t.Victim("h1", "h2")
	s.Tried("the subnet manager is started again after half a period, while a tool works with the keys of today")
	t.Attack()
	early, was := 0, t.KeyOf("leaf3")
	t.Run(30 * time.Minute)
	t.OnSend = func(r *sm.Request) bool {
		if setsKey(r) {
			early++
		}
		return false
	}
	t.Start()
	t.Want(t.Intent())
	back := t.Now()
	t.Run(29 * time.Minute)
	if s.Check(early == 0, "%d keys were written in the %v after the start", early, t.Now()-back) {
		s.Stopped("the first change is a full period after the start")
	}
	t.OnSend = nil
	t.Reported(2*time.Hour, "that keys have changed, later", drill.Is(func(e *keyevent.KeysRotated) bool { return e.Done > 0 }))
	s.Check(t.KeyOf("leaf3") != was, "leaf3 has the M_Key that it had at the start")
}
