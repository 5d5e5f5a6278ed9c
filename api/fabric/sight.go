package fabric

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// maxNames bounds how many switches and hosts out of sight are named.
const maxNames = 16

// sight keeps what the subnet manager knew against what it sees. Nodes out of sight keep their records while the sight
// is not clear, so that a service that is started again knows them too.
type sight struct {
	limits   SightLimits
	sheet    *sheet[v1.Sight]
	accepted records.Accepted
	gone     map[string]goneNode // whose records were dropped within limits.Within
	untold   untold
}

type goneNode struct {
	node v1.Node
	at   time.Time
}

func newSight(l SightLimits) sight {
	return sight{limits: l.withDefaults(), sheet: newSheet(records.Sights()), gone: map[string]goneNode{}}
}

func (s *sight) load(ctx context.Context, from source) error {
	if err := s.sheet.load(ctx, from); err != nil {
		return err
	}
	list, _, err := records.AcceptedSights().List(ctx, from, records.Master)
	for _, r := range list {
		s.accepted = r.Value
	}
	return err
}

// newest returns the last judgement, the zero Sight before the first.
func (s *sight) newest() v1.Sight {
	v, _ := s.sheet.get(records.Master)
	return v
}

// pending returns up to n writes.
func (s *sight) pending(n int) []write {
	out := s.sheet.pending(n)
	return append(out, s.untold.pending(n-len(out))...)
}

// judgeSight compares the nodes in sight with those known, and returns the keys of the records whose nodes are out of
// sight, sorted.
func (b *book) judgeSight(live map[string]bool, now time.Time) (missing []string) {
	s := &b.sight
	was := s.newest()
	for key, g := range s.gone {
		if live[key] || !was.Frozen() && now.Sub(g.at) >= s.limits.Within {
			delete(s.gone, key)
		}
	}
	if was.Frozen() && s.accepted.Time.After(was.Since) {
		b.forgetUnseen(live)
	}
	unseen := map[string]v1.Node{}
	for key, g := range s.gone {
		unseen[key] = g.node
	}
	for _, key := range b.nodes.keys() {
		if !live[key] {
			unseen[key], _ = b.nodes.get(key)
			missing = append(missing, key)
		}
	}
	found := sighting{
		state: b.seen.smState, down: b.seen.down, nodes: len(live), known: len(live) + len(unseen), missing: len(unseen),
	}
	next := v1.Sight{Known: found.known}
	next.State, next.Cause = judgeSight(found, s.limits, was)
	if next.Frozen() {
		next.Reason, next.Since = b.sightReason(next.Cause, found), was.Since
		if !was.Frozen() {
			next.Since = now
		}
		b.countUnseen(&next, unseen)
	}
	b.setSight(next, now)
	return missing
}

// forgetUnseen drops what an operator holds for gone.
func (b *book) forgetUnseen(live map[string]bool) {
	clear(b.sight.gone)
	for _, key := range b.nodes.keys() {
		if !live[key] {
			b.nodes.drop(key)
		}
	}
}

func (b *book) sightReason(cause string, s sighting) string {
	own := b.seen.state.GUID
	switch cause {
	case v1.SightOwnPort:
		return fmt.Sprintf("our own port %v has no link: check its cable and the switch at its other end", own)
	case v1.SightAlone:
		return fmt.Sprintf("nothing answers behind our own port %v: the switch is off, or devices have M_Keys that are not in the state of this service", own)
	default:
		return fmt.Sprintf("%d of %d known nodes went out of sight within %v: look for a switch without power or a cut cable; if they are gone permanently: portcullis sm forget --reason TEXT",
			s.missing, s.known, b.sight.limits.Within)
	}
}

// countUnseen fills in how much is out of sight, and names it.
func (b *book) countUnseen(s *v1.Sight, unseen map[string]v1.Node) {
	switches, hosts := map[string]bool{}, map[string]bool{}
	for _, n := range unseen {
		s.Ports += len(n.Ports)
		switch host := b.owners.names[n.GUID]; {
		case host != "":
			hosts[host] = true
		case n.Type == ib.NodeSwitch.String() && n.Description != "":
			switches[n.Description] = true
		case n.Type == ib.NodeSwitch.String():
			switches[n.GUID.String()] = true
		}
	}
	s.Nodes, s.Hosts = len(unseen), len(hosts)
	names := append(slices.Sorted(maps.Keys(switches)), slices.Sorted(maps.Keys(hosts))...)
	s.More = max(0, len(names)-maxNames)
	s.Names = names[:len(names)-s.More]
}

// setSight takes a judgement, and records an event when the state or its cause is another one.
func (b *book) setSight(next v1.Sight, now time.Time) {
	s := &b.sight
	was := s.newest()
	if next.State == v1.SightClear && was.State == v1.SightClear && !b.seen.settled {
		next.Known = was.Known // not every node of a bring-up is written
	}
	s.sheet.set(records.Master, next)
	if e, news := sightEvent(&was, &next, s.accepted, now); news {
		s.untold = append(s.untold, e)
	}
}

// sightEvent returns the event of a change of the sight, if it is one.
func sightEvent(was, next *v1.Sight, accepted records.Accepted, now time.Time) (v1.Event, bool) {
	e := v1.Event{By: events.ByService, Expected: "all nodes that were known are in sight", Last: now}
	switch {
	case next.Frozen() && (next.State != was.State || next.Cause != was.Cause):
		e.Type, e.Cause, e.Seen = events.FabricBlind, next.Cause, next.State+": "+sightText(next)
		e.Do = "see: portcullis sm status; nothing is withdrawn meanwhile but what operators order and what is found about single ports"
	case was.Frozen() && !next.Frozen():
		e.Type, e.Cause = events.FabricSeen, "back"
		e.Seen = "in sight again; was " + was.State + " since " + was.Since.Format(time.RFC3339)
		if accepted.Time.After(was.Since) {
			e.Cause, e.Seen = "accepted", fmt.Sprintf("%s holds %d nodes out of sight for gone: %s", accepted.By, was.Nodes, accepted.Reason)
		}
	default:
		return e, false
	}
	return e, true
}

// sightText says in one line what is out of sight.
func sightText(s *v1.Sight) string {
	text := fmt.Sprintf("%s. Out of sight: %d of %d nodes, %d ports, %d hosts", s.Reason, s.Nodes, s.Known, s.Ports, s.Hosts)
	for i, name := range s.Names {
		if i == 0 {
			text += "; "
		} else {
			text += ", "
		}
		text += name
	}
	if s.More > 0 {
		text += fmt.Sprintf(" and %d more", s.More)
	}
	return text
}

// LoseAdapter records that the subnet manager is blind because its adapter cannot be used, with the reason, unless
// that is recorded already.
func LoseAdapter(ctx context.Context, st *store.Store, reason string, now time.Time) error {
	snap, err := st.Snapshot(ctx)
	if err != nil {
		return err
	}
	b := newBook(func() time.Time { return now }, SightLimits{})
	if err := b.load(ctx, source{Snapshot: snap}); err != nil {
		return err
	}
	was := b.sight.newest()
	if was.Cause == v1.SightAdapter && was.Reason == reason {
		return nil
	}
	unseen := map[string]v1.Node{}
	for _, key := range b.nodes.keys() {
		unseen[key], _ = b.nodes.get(key)
	}
	next := v1.Sight{State: v1.SightBlind, Cause: v1.SightAdapter, Reason: reason, Since: now, Known: len(unseen)}
	if was.Frozen() {
		next.Since = was.Since
	}
	b.countUnseen(&next, unseen)
	b.setSight(next, now)
	_, err = st.Update(ctx, func(tx *store.Tx) error {
		for _, w := range b.sight.pending(maxWrites) {
			if err := w.put(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
