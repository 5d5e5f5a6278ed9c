package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// retryPause is how long Run rests when the store does not answer.
const retryPause = time.Second

// roomPause is when a host is looked at again that could get nothing as the store is short
// of room, or the clock not believed.
const roomPause = 5 * time.Second

// Run settles hosts whenever something about them changes: a port is seen or
// gone, a table was read back, evidence grows old. It returns when ctx ends,
// and meanwhile outlives every failure of the store.
func (s *Service) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.o.Log.Error("admission is not following the store", "err", err, "retry_in", retryPause)
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
	return nil
}

// follow settles all hosts once and then follows the changes.
func (s *Service) follow(ctx context.Context) error {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return err
	}
	owners, err := s.settleAll(ctx, snap)
	if owners == nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := s.o.Store.Watch(ctx, "", snap.Revision)
	for {
		wake := owners.nextDeadline()
		if n := owners.nextReference; !n.IsZero() && (wake.IsZero() || n.Before(wake)) {
			wake = n
		}
		var alarm <-chan time.Time
		if !wake.IsZero() {
			alarm = time.After(max(wake.Sub(s.now()), 0))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		// settleSome reports each host that it could not settle, and has it tried again.
		case <-alarm:
			if err := s.followReferences(ctx, owners, !owners.nextReference.IsZero() && !s.now().Before(owners.nextReference)); err != nil {
				return err
			}
			_ = s.settleSome(ctx, owners, owners.due(s.now()))
		case c, ok := <-changes:
			if ok && c.Err == nil {
				c = withMore(c, changes)
			}
			if !ok || c.Err != nil {
				return errors.Join(errors.New("watch ended"), c.Err)
			}
			if slices.ContainsFunc(c.Changes, ofReview) || owners.goesOn(c.Changes) {
				if owners, err = s.settleAgain(ctx); err != nil {
					return err
				}
			}
			if err := s.followReferences(ctx, owners, slices.ContainsFunc(c.Changes, ofReferences)); err != nil {
				return err
			}
			_ = s.settleSome(ctx, owners, owners.touched(c.Changes))
		}
	}
}

// owners says which host a change concerns, and when hosts change by
// themselves.
type owners struct {
	byGUID    map[string]map[string]bool // port GUID to the hosts that have it or a grant of it
	uses      map[string]string          // clusters to those that they use
	deadlines map[string]time.Time

	frozen      bool             // the subnet manager does not see the fabric that it knows
	generations map[string]int64 // of brakes, by class

	refs          attestation.Trust
	nextReference time.Time                  // when one of them ends by itself; zero: never
	rests         map[string]string          // hosts to the set that their evidence rests on
	restedOn      map[string]map[string]bool // and the other way round
}

func newOwners() *owners {
	return &owners{
		byGUID: map[string]map[string]bool{}, uses: map[string]string{}, deadlines: map[string]time.Time{},
		generations: map[string]int64{}, rests: map[string]string{}, restedOn: map[string]map[string]bool{},
	}
}

// goesOn reports whether what was stopped goes on now: an operator released a brake, or the subnet manager sees again.
func (o *owners) goesOn(changes []store.Change) (goes bool) {
	for _, c := range changes {
		if class, ok := Brakes().KeyOf(c.Key); ok && c.Value != nil {
			if b, err := Brakes().Decode(c); err == nil {
				goes = goes || b.Value.Generation != o.generations[class]
				o.generations[class] = b.Value.Generation
			}
		}
		if _, ok := records.Sights().KeyOf(c.Key); ok && c.Value != nil {
			if seen, err := records.Sights().Decode(c); err == nil {
				goes = goes || o.frozen && !seen.Value.Frozen()
				o.frozen = seen.Value.Frozen()
			}
		}
	}
	return goes
}

// settleAgain looks at every host as of now. The error is about what could not be read.
func (s *Service) settleAgain(ctx context.Context) (*owners, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	o, err := s.settleAll(ctx, snap)
	if o == nil {
		return nil, err
	}
	return o, nil // each host that could not be settled is in the log, and is tried again
}

// ofReview reports whether a review began or ended.
func ofReview(c store.Change) bool {
	_, ok := review.Marks().KeyOf(c.Key)
	return ok
}

func ofReferences(c store.Change) bool {
	_, ok := attestation.References().KeyOf(c.Key)
	return ok
}

// followReferences has the hosts judged again whose evidence rests on a set that counts
// otherwise than before, if any may.
func (s *Service) followReferences(ctx context.Context, o *owners, may bool) error {
	if !may {
		return nil
	}
	refs, next, err := s.evidence.Trusted(ctx, s.o.Store)
	if err != nil {
		return err
	}
	was := o.refs
	o.refs, o.nextReference = refs, next
	for name, hosts := range o.restedOn {
		if was.Standing(name) != refs.Standing(name) {
			for id := range hosts {
				o.deadlines[id] = s.now()
			}
		}
	}
	_ = s.settleSome(ctx, o, o.due(s.now())) // reports each host that it could not settle
	return nil
}

// settleAll looks at every host and settles those that need it. Its owners are
// nil if the hosts could not be read; otherwise the error is about the hosts
// that could not be settled.
func (s *Service) settleAll(ctx context.Context, snap store.Snapshot) (*owners, error) {
	all, err := s.gatherAll(ctx, snap)
	if err != nil {
		return nil, err
	}
	o := newOwners()
	if o.refs, o.nextReference, err = s.evidence.Trusted(ctx, snap); err != nil {
		return nil, err
	}
	clusters, _, err := tenancy.Clusters().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	for _, c := range clusters {
		o.uses[c.Key] = strings.Join(c.Value.Uses, " ")
	}
	brakes, _, err := Brakes().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	for _, b := range brakes {
		o.generations[b.Key] = b.Value.Generation
	}
	var ids []string
	for _, f := range all {
		o.learn(f)
		o.frozen = f.braking.frozen
		if unsettled(f, decide(f)) || s.evidence.Stale(f.rec.Evidence, o.refs) {
			ids = append(ids, f.host.ID)
		}
	}
	return o, s.settleSome(ctx, o, ids)
}

// unsettled reports whether settle would write something.
func unsettled(f *facts, d decision) bool {
	if d.phase != hostrecord.PhaseOf(f.rec) || len(f.grants) != len(f.rec.Grants) || f.leaving() != f.leaves {
		return true
	}
	for k, st := range f.grants {
		wanted := slices.Contains(d.want, k)
		if wanted == st.Grant.Withdrawn || wanted && st.Grant.Limited != f.limited(k) || st.Proven() {
			return true
		}
	}
	return slices.ContainsFunc(d.want, func(k records.Key) bool { _, known := f.grants[k]; return !known })
}

// Settle settles all hosts once, as Run does when it begins. It is for callers that have no goroutine to run.
func (s *Service) Settle(ctx context.Context) error {
	snap, err := s.o.Store.Snapshot(ctx)
	if err == nil {
		_, err = s.settleAll(ctx, snap)
	}
	return err
}

// settleSome settles the hosts. One that cannot be settled holds up no other:
// it is logged and tried again after retryPause.
func (s *Service) settleSome(ctx context.Context, o *owners, ids []string) error {
	var failed []error
	ids = s.leaveSettled(ctx, o, ids)
	ctx = withPending(ctx, s.foresee(ctx, o.refs, ids))
	for _, id := range ids {
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		var f *facts
		err := s.update(ctx, func(tx *store.Tx) (err error) {
			f, _, err = s.settleIfStale(ctx, tx, id, o.refs)
			return err
		})
		if refusal.IsKind(err, refusal.NotFound) {
			continue
		}
		if err != nil {
			s.o.Log.Error("host could not be settled", "host", id, "err", err, "retry_in", retryPause)
			o.deadlines[id] = s.now().Add(retryPause)
			failed = append(failed, fmt.Errorf("settle host %s: %w", id, err))
			continue
		}
		o.learn(f)
	}
	return errors.Join(failed...)
}

// settleIfStale settles a host, and judges its evidence again if what it was judged by
// has changed.
func (s *Service) settleIfStale(ctx context.Context, tx *store.Tx, id string, refs attestation.Trust) (*facts, decision, error) {
	rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, id))
	if err != nil {
		return nil, decision{}, err
	}
	if refs, err = s.evidence.RejudgeBy(ctx, tx, rec.Evidence, refs); err != nil {
		return nil, decision{}, err
	}
	return s.settleBy(ctx, tx, id, refs)
}

// rest notes which set the evidence of a host rests on.
func (o *owners) rest(id, set string) {
	if was := o.rests[id]; was != set {
		if delete(o.restedOn[was], id); len(o.restedOn[was]) == 0 {
			delete(o.restedOn, was)
		}
	}
	if delete(o.rests, id); set == "" {
		return
	}
	if o.restedOn[set] == nil {
		o.restedOn[set] = map[string]bool{}
	}
	o.rests[id], o.restedOn[set][id] = set, true
}

// learn notes the host's GUIDs and the time its evidence grows too old.
func (o *owners) learn(f *facts) {
	id := f.host.ID
	for _, p := range f.host.Ports() {
		o.add(p.GUID, id)
	}
	for k := range f.grants {
		o.add(k.GUID, id)
	}
	delete(o.deadlines, id)
	set := ""
	if f.rec.Evidence != nil {
		set = f.rec.Evidence.Reference
	}
	o.rest(id, set)
	phase := hostrecord.PhaseOf(f.rec)
	if ev := f.rec.Evidence; ev != nil && !f.rec.Admitted && (phase == v1.PhaseVerified || phase == v1.PhaseGranting) {
		o.deadlines[id] = ev.Time.Add(f.evidenceAge + time.Second)
		if again := f.now.Add(roomPause); (f.short != "" || f.halted != "") && again.Before(o.deadlines[id]) {
			o.deadlines[id] = again
		}
	}
	if since, gone := f.unseenSince(); gone && f.unseenFor > 0 && f.now.Sub(since) < f.unseenFor && len(f.standing()) > 0 {
		o.deadlines[id] = since.Add(f.unseenFor)
	}
}

func (o *owners) add(g ib.GUID, host string) {
	if o.byGUID[g.String()] == nil {
		o.byGUID[g.String()] = map[string]bool{}
	}
	o.byGUID[g.String()][host] = true
}

func (o *owners) nextDeadline() (next time.Time) {
	for _, t := range o.deadlines {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next
}

func (o *owners) due(now time.Time) []string {
	var ids []string
	for id, t := range o.deadlines {
		if !t.After(now) {
			ids = append(ids, id)
			delete(o.deadlines, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// touched returns the hosts that the changes concern, sorted.
func (o *owners) touched(changes []store.Change) []string {
	ids := map[string]bool{}
	for _, c := range changes {
		maps.Copy(ids, o.hostsOf(c.Key))
		for _, id := range o.users(c) {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// users returns the hosts of a cluster that uses others than before.
func (o *owners) users(c store.Change) []string {
	name, ok := tenancy.Clusters().KeyOf(c.Key)
	if !ok {
		return nil
	}
	rec, err := tenancy.Clusters().Decode(c)
	now := strings.Join(rec.Value.Uses, " ")
	if err != nil || c.Value == nil || o.uses[name] == now {
		if c.Value == nil {
			delete(o.uses, name)
		}
		return nil
	}
	o.uses[name] = now
	return rec.Value.Hosts
}

func (o *owners) hostsOf(key string) map[string]bool {
	if id, ok := inventory.Hosts().KeyOf(key); ok {
		return map[string]bool{id: true}
	}
	if id, ok := hostrecord.Records().KeyOf(key); ok {
		return map[string]bool{id: true}
	}
	if id, ok := review.Decisions().KeyOf(key); ok {
		return map[string]bool{id: true}
	}
	if guid, ok := records.Ports().KeyOf(key); ok {
		return o.byGUID[guid]
	}
	k, ok := records.Memberships().KeyOf(key)
	if !ok {
		k, ok = records.Grants().KeyOf(key) // one that goes may be what another host waits for
	}
	if parts := strings.Split(k, "/"); ok && len(parts) == 3 {
		return o.byGUID[parts[1]]
	}
	return nil
}
