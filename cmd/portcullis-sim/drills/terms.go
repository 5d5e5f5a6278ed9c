package drills

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// leaseTTL is that of terms in drills. It is long because the timers of a candidate are those of the wall, and nothing may depend on them.
const leaseTTL = 10 * time.Minute

// terms are the terms of instances that lead one after the other.
type terms struct {
	v    *site
	ends []func()
}

// lead has an instance lead, and returns its term.
func (t *terms) lead(instance string) *leader.Term {
	v := t.v
	began := make(chan *leader.Term, 1)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	c := leader.New(leader.Options{
		Store: v.store, Role: "sm", Instance: instance, TTL: leaseTTL,
		Clock: func() leader.Instant { return leader.Instant(v.leases().Sub(time.Unix(0, 0))) },
	})
	go func() {
		ended <- c.Run(ctx, func(ctx context.Context, term *leader.Term) error {
			began <- term
			<-ctx.Done()
			return nil
		})
	}()
	t.ends = append(t.ends, func() {
		cancel()
		v.scene.Must(<-ended)
	})
	select {
	case term := <-began:
		return term
	case err := <-ended:
		v.scene.Must(errors.Join(errors.New("the instance "+instance+" does not lead"), err))
		return nil
	}
}

func (t *terms) end() {
	for _, end := range t.ends {
		end()
	}
}

// pausedLeader is T139: a leader pauses for longer than its lease, another one leads, and the first one goes on.
func pausedLeader(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}, leases: true})
	t := &terms{v: v}
	defer t.end()
	v.passLeases()
	first := t.lead("a")
	old := fabric.NewTurn(fabric.Options{Store: v.store, Log: v.log, Now: v.clock, Guard: first.Guard})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	held := v.Intent()

	s.Tried("instance a, which leads, pauses; its lease ends, instance b leads and removes h4; then a goes on where it was: it has h4 among the hosts that it wants")
	v.mark()
	v.Run(2 * leaseTTL)
	v.passLeases()
	second := t.lead("b")
	s.Check(second.Epoch > first.Epoch, "the term of b has epoch %d, that of a %d", second.Epoch, first.Epoch)
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0, "b did not remove h4, so nothing is proven")

	v.Step(&sm.Mandate{Held: first.Left() > 0 || s.Off(LeaseFence)})
	v.Want(held)
	v.Run(time.Minute)
	ghost := v.TenantKeys(v.SwitchPort("h4", 1))
	s.Check(len(ghost) == 0, "a, whose lease has ended, wrote %v into the switch port of h4", ghost)
	s.Check(!v.delivered("h4", "h1", red), "h4, which b removed, reaches h1 because of a")
	_, err := old.Report(v.ctx(), []sm.Event{&sm.MembershipApplied{GUID: v.GUID("h4", 1), PKey: red.Base(), Place: v.Place("h4", 1), Revision: 1 << 40}}, v.View())
	if s.Check(errors.Is(err, leader.ErrDeposed), "the report of a, whose lease has ended, is answered with %v", err) {
		s.Stopped("a leader counts its lease from when it asked for it: it sends nothing after that, and the store takes nothing of it: %v", err)
	}
	_, err = v.store.Update(v.ctx(), func(tx *store.Tx) error { return second.Guard(v.ctx(), tx) })
	s.Check(err == nil, "the store takes nothing of b, which leads: %v", err)
	now, err := leader.Current(v.ctx(), v.store, "sm")
	s.Must(err)
	v.Counted(now.Instance == "b" && now.Epoch == second.Epoch, "the store: %s leads in epoch %d", now.Instance, now.Epoch)
	v.Step(&sm.Mandate{Held: true}) // of b, on the same port from here on
	v.sync()
}

// lateStandby is T140: the instance that takes over has seen less than the one before.
func lateStandby(s *drill.Scene) {
	v := newSite(s, options{fabric: drill.SiteOptions{SM: sm.Config{IntentWait: time.Minute}}, credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	seen, facts := v.Intent(), v.Facts()

	s.Tried("the standby instance hears nothing for a while; meanwhile h4 is released and h8 admitted; then the leader dies, and the standby takes over with what it had")
	v.mark()
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	v.admit("ann", "red", "h8")
	released, admitted := v.SwitchPort("h4", 1), v.SwitchPort("h8", 1)
	member := func() bool { return len(v.TenantKeys(released)) > 0 }
	var ghost, lost bool
	v.Crash()
	v.Restore(facts)
	v.OnStep = func() {
		ghost = ghost || member()
		lost = lost || len(v.TenantKeys(admitted)) == 0
	}
	v.restartService()
	v.Start()
	if s.Off(OwnIntent) {
		v.Want(seen)
	}
	v.outage.away = true
	_, err := v.turn.Intent(v.ctx())
	s.Check(errors.Is(err, store.ErrAway), "without a store something is wanted: %v", err)
	v.Run(20 * time.Second)
	v.outage.away = false
	v.sync()
	v.OnStep = nil
	s.Check(!ghost, "h4, which was released, was a member again after the standby took over")
	s.Check(!lost, "h8, which was admitted, lost its P_Key when the standby took over")
	s.Check(!v.delivered("h4", "h1", red), "h4, which was released, reaches h1")
	if s.Check(v.delivered("h8", "h1", red), "h8, which was admitted, does not reach h1") {
		s.Stopped("who takes over wants nothing of its own: it reads the fabric, leaves tables as they are, and waits for what the store wants now")
	}
	v.phase("h4", "quarantined")
}

// keylessStandby is T141: the instance that is to take over cannot open the keys of devices.
func keylessStandby(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	random := rand.NewChaCha8([32]byte{141, byte(s.Seed())})
	root := newRoot(s, "drill", random)
	v.keep(root, random)
	v.mark()

	s.Tried("the root of the keys is taken from the standby, and it is to take over; then an operator releases h4")
	err := opens(v, newRoot(s, "another", random), random)
	before := v.kept.Dump()
	if s.Off(KeyCheck) {
		err = nil
		takeOver(v, nil)
	}
	if err != nil {
		v.Counted(true, "readiness of the instance: %v", err)
		s.Stopped("an instance whose root does not open the keys says so, and does not lead: %v", err)
	}
	s.Check(string(before) == string(v.kept.Dump()), "the standby changed the sealed keys that it could not open")
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	if !s.Off(KeyCheck) {
		v.sync()
	} else {
		v.rounds(2)
	}
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0 && !v.delivered("h4", "h1", red), "h4 was released, and keeps its P_Key: an instance without keys leads")
	if s.Off(KeyCheck) {
		return
	}
	s.Must(opens(v, root, random))
	v.restored(root, random)
	v.sync()
	s.Check(v.delivered("h1", "h5", red), "h1 and h5 do not reach each other after an instance with keys took over")
}

// opens reports why a root does not open the sealed keys.
func opens(v *site, root vault.Root, random *rand.ChaCha8) error {
	_, err := keystore.Open(v.turn.Store(), root, random)
	return err
}

// takeOver has another instance be Subnet Manager, with some facts.
func takeOver(v *site, facts []sm.Fact) {
	in := v.Intent()
	v.Crash()
	v.Restore(facts)
	v.Start()
	v.Want(in)
	v.Run(time.Minute)
}
