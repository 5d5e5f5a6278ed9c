package adoptions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/api/admission"
	"portcullis/api/adoption"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	// retryPause is how long Run rests when the store does not answer.
	retryPause = time.Second
	// settleEvery is the shortest time between two looks at all memberships.
	settleEvery = time.Second
	// clockPause is when a deadline is looked at again that passed while the clock was not believed.
	clockPause = 5 * time.Second
	// changesAtOnce bounds the memberships of one transaction.
	changesAtOnce = 50
)

// Run ends adoptions when hosts are admitted and when deadlines pass. It returns when ctx ends, and outlives every failure of
// the store.
func (s *Service) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.o.Log.Error("adoptions do not follow the store", "err", err, "retry_in", retryPause)
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
	return nil
}

func (s *Service) follow(ctx context.Context) error {
	for {
		l, err := s.look(ctx)
		if err != nil {
			return err
		}
		if err := s.wait(ctx, l); err != nil {
			return err
		}
	}
}

// noMembers is what keys of adoptions and of their memberships begin with: nothing else matters while there is no membership.
const noMembers = "adoption"

// wait returns when adoptions are to be looked at again.
func (s *Service) wait(ctx context.Context, l *look) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	due := l.next
	changes := s.o.Store.Watch(ctx, l.watched(), l.revision)
	for {
		var alarm <-chan time.Time
		if !due.IsZero() {
			alarm = time.After(max(due.Sub(s.now()), 0))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-alarm:
			return nil
		case c, ok := <-changes:
			if !ok || c.Err != nil {
				return errors.Join(errors.New("watch ended"), c.Err)
			}
			if soon := s.now().Add(settleEvery); slices.ContainsFunc(c.Changes, l.matters) && (due.IsZero() || soon.Before(due)) {
				due = soon
			}
		}
	}
}

// watched returns what the keys of changes begin with that can matter.
func (l *look) watched() string {
	if len(l.keys) == 0 {
		return noMembers
	}
	return ""
}

// matters reports whether a change may end an adoption: of the memberships that were looked at and of their hosts, or one by which
// these become others.
func (l *look) matters(c store.Change) bool {
	for _, is := range []func(string) (string, bool){records.Grants().KeyOf, records.Memberships().KeyOf} {
		if k, ok := is(c.Key); ok {
			return l.keys[k]
		}
	}
	if id, ok := hostrecord.Records().KeyOf(c.Key); ok {
		return l.recs[id]
	}
	for _, is := range []func(string) (string, bool){
		Records().KeyOf, records.Adoptions().KeyOf, records.Finds().KeyOf, records.Sights().KeyOf, inventory.Hosts().KeyOf, admission.Brakes().KeyOf,
	} {
		if _, ok := is(c.Key); ok {
			return true
		}
	}
	return false
}

// Settle does what is due, and returns when it is to be called again at the latest; zero: after a change.
func (s *Service) Settle(ctx context.Context) (time.Time, error) {
	l, err := s.look(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return l.next, nil
}

// look looks at all memberships, and does what is due.
func (s *Service) look(ctx context.Context) (*look, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.keepFound(ctx, snap)
	refused, _ := errors.AsType[*refusal.Error](err)
	full := refused != nil && refused.Code == codeOpen
	if full {
		s.o.Log.Error("what the takeover found is not recorded, and the takeover waits", "err", err)
	} else if err != nil {
		return nil, err
	}
	if found {
		if snap, err = s.o.Store.Snapshot(ctx); err != nil {
			return nil, err
		}
	}
	recs, _, err := Records().List(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	items, err := stockOf(ctx, snap, "")
	if err != nil {
		return nil, err
	}
	l := &look{
		s: s, now: s.now(), revision: snap.Revision, open: map[string]Record{}, left: map[string]int{}, halted: s.halted() != nil,
		keys: map[string]bool{}, recs: map[string]bool{},
	}
	for i := range recs {
		if keeps(&recs[i].Value) {
			l.open[recs[i].Key] = recs[i].Value
		}
	}
	if full {
		l.at(l.now.Add(clockPause))
	}
	l.sort(items)
	return l, l.act(ctx)
}

// look is one look at all memberships.
type look struct {
	s        *Service
	now      time.Time
	revision int64 // of the store
	halted   bool
	keys     map[string]bool // of the memberships
	recs     map[string]bool // hosts that have their ports

	open map[string]Record
	left map[string]int // memberships that stay, or are to be withdrawn, by adoption
	next time.Time

	taken  map[string][]records.Key // withdrawn by admission, which said nothing of it here, by adoption
	over   []item                   // of which nothing is left, or that admission has
	proven map[string][]records.Key // to be withdrawn, by adoption
	late   map[string][]item        // the same, by host
	hosts  map[string]bool          // that have adopted memberships
}

func (l *look) sort(items []item) {
	l.taken, l.proven, l.late, l.hosts = map[string][]records.Key{}, map[string][]records.Key{}, map[string][]item{}, map[string]bool{}
	for i := range items {
		it := &items[i]
		id := it.m.Adoption
		l.keys[it.key.String()], l.recs[it.host] = true, true
		if it.grant.Adopted == id && it.grant.Withdrawn && it.m.Cause == "" {
			l.taken[id] = append(l.taken[id], it.key)
		}
		switch {
		case it.replaced(), it.absent(), it.grant == records.Grant{}:
			l.over = append(l.over, *it)
			continue
		case !it.kept():
			continue // until it is proven absent
		}
		l.left[id]++
		l.hosts[it.subject()] = true
		rec, open := l.open[id]
		standing := adoption.Standing{Now: l.now, Deadline: rec.Deadline, Admitted: it.rec.Admitted && it.rec.Cluster != "", Undecided: rec.State == v1.AdoptionFound}
		switch cause := standing.Ends(); {
		case cause == adoption.Proven:
			l.proven[id] = append(l.proven[id], it.key)
		case cause == adoption.Deadline && open && l.halted:
			l.at(l.now.Add(clockPause))
		case cause == adoption.Deadline:
			l.late[it.subject()] = append(l.late[it.subject()], *it)
		case !standing.Undecided:
			l.at(rec.Deadline)
		}
	}
}

// keeps reports whether an adoption keeps memberships.
func keeps(rec *Record) bool { return rec.State == v1.AdoptionKept || rec.State == v1.AdoptionFound }

// at has the next look be at t or earlier.
func (l *look) at(t time.Time) {
	if l.next.IsZero() || t.Before(l.next) {
		l.next = t
	}
}

func (l *look) act(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(l.taken)) {
		for keys := range slices.Chunk(l.taken[id], changesAtOnce) {
			if err := l.s.update(ctx, func(tx *store.Tx) error { return l.noteTaken(ctx, tx, id, keys) }); err != nil {
				return err
			}
		}
	}
	if err := l.forget(ctx); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(l.proven)) {
		for keys := range slices.Chunk(l.proven[id], changesAtOnce) {
			err := l.s.update(ctx, func(tx *store.Tx) error {
				if err := l.s.withdraw(ctx, tx, id, keys, adoption.Proven); err != nil {
					return err
				}
				return l.s.ended(ctx, tx, service, id, keys, adoption.Proven, "the host was admitted, and has what its cluster has")
			})
			if err != nil {
				return err
			}
		}
	}
	losing := slices.Sorted(maps.Keys(l.late))
	for _, host := range losing {
		if err := l.expire(ctx, host, losing); err != nil {
			return err
		}
	}
	return l.heads(ctx)
}

// noteTaken records that admission withdrew memberships.
func (l *look) noteTaken(ctx context.Context, tx *store.Tx, id string, keys []records.Key) error {
	var told []records.Key
	for _, k := range keys {
		m, err := store.Optional(records.Adoptions().Get(ctx, tx, k.String()))
		if err != nil {
			return err
		}
		if m.Adoption != id || m.Cause != "" {
			continue
		}
		m.Cause = string(adoption.Taken)
		if err := records.Adoptions().Put(tx, k.String(), m); err != nil {
			return err
		}
		told = append(told, k)
	}
	if len(told) == 0 {
		return nil
	}
	return l.s.ended(ctx, tx, service, id, told, adoption.Taken, "the host was released or fenced or left inventory, or the review of a restored state did not find it in the fabric")
}

// forget drops memberships that are proven absent, and the notes of those that admission granted itself.
func (l *look) forget(ctx context.Context) error {
	for items := range slices.Chunk(l.over, changesAtOnce) {
		err := l.s.update(ctx, func(tx *store.Tx) error {
			proven := map[string][]records.Key{}
			for i := range items {
				it := &items[i]
				gone, err := l.forgetOne(ctx, tx, it)
				if err != nil {
					return err
				}
				if gone && it.replaced() {
					proven[it.m.Adoption] = append(proven[it.m.Adoption], it.key)
				}
			}
			for _, id := range slices.Sorted(maps.Keys(proven)) {
				if err := l.s.ended(ctx, tx, service, id, proven[id], adoption.Proven, "admission grants them itself"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetOne drops one, and reports false where another writer changed it meanwhile.
func (l *look) forgetOne(ctx context.Context, tx *store.Tx, it *item) (bool, error) {
	k := it.key.String()
	now, err := records.Grants().Get(ctx, tx, k)
	if err != nil && !errors.Is(err, store.ErrNotFound) || now.Modified != it.at {
		return false, ignoreNotFound(err)
	}
	records.Adoptions().Delete(tx, k)
	if it.absent() {
		records.Grants().Delete(tx, k)
		if err := l.s.o.PKeys.FreePKey(ctx, tx, it.key.PKey); err != nil {
			return false, err
		}
	}
	if l.hosts[it.subject()] {
		return true, nil // it has others, which the brake may keep
	}
	return true, l.s.o.Brake.LosesNothing(ctx, tx, admission.BrakeAdoption, it.subject())
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// expire withdraws what a host has that did not attest in time, unless the brake stops it.
func (l *look) expire(ctx context.Context, host string, losing []string) error {
	by := map[string][]records.Key{}
	for _, it := range l.late[host] {
		by[it.m.Adoption] = append(by[it.m.Adoption], it.key)
	}
	return l.s.update(ctx, func(tx *store.Tx) error {
		goes, err := l.s.o.Brake.MayLose(ctx, tx, admission.Losing{
			Class: admission.BrakeAdoption, Cause: "the host did not attest before the deadline of its adoption", Host: host, Together: losing, Members: len(l.hosts),
		})
		if err != nil || !goes {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(by)) {
			err := errors.Join(
				l.s.withdraw(ctx, tx, id, by[id], adoption.Deadline),
				l.s.ended(ctx, tx, service, id, by[id], adoption.Deadline, fmt.Sprintf("host %s did not attest before the deadline", host)),
			)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// heads warns of deadlines, and closes adoptions that keep nothing any longer.
func (l *look) heads(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		warn := adoption.Warns(l.open[id].Confirmed, l.open[id].Deadline)
		late := !l.now.Before(warn)
		switch rec := l.open[id]; {
		case l.left[id] == 0:
		case rec.State == v1.AdoptionFound:
			continue
		case late && !rec.Warned:
		case !rec.Warned:
			l.at(warn)
			continue
		default:
			continue
		}
		err := l.s.update(ctx, func(tx *store.Tx) error { return l.head(ctx, tx, id) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *look) head(ctx context.Context, tx *store.Tx, id string) error {
	rec, err := get(ctx, tx, id)
	if err != nil || !keeps(&rec) {
		return err
	}
	was := rec
	if l.left[id] == 0 {
		rec.State, rec.Ended = v1.AdoptionOver, l.now
		return errors.Join(Records().Put(tx, id, rec), l.s.log(ctx, tx, &audit.Change{
			Actor: service, Action: "adoption.over", Object: "adoption/" + id, Before: was, After: rec, Detail: "it keeps no membership any longer",
		}))
	}
	rec.Warned = true
	return errors.Join(Records().Put(tx, id, rec), events.Record(ctx, tx, l.now, v1.Event{
		Type: events.AdoptionDue, By: events.ByService, Cause: "deadline", Expected: "hosts attest before the deadline of their adoption",
		Seen: fmt.Sprintf("%d memberships of %s are kept without proof, and end at %s", l.left[id], id, rec.Deadline.Format(time.RFC3339)),
	}))
}
