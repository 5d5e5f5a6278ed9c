package verify

import (
	"fmt"
	"iter"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Attach sets the place of the Subnet Manager itself: own is our adapter, own.At the switch port it is cabled to, as the
// NodeInfo of that switch says. If the specification has this link, that switch is verified and all other verdicts follow
// from it. Otherwise nothing is verified, nothing is disabled, and an operator is called: our own cable is protected.
func (j *Judge) Attach(own Seen) Ruling {
	j.own = own.At
	_, peer := j.spec.LinkAt(j.spec.SlotOf(own.end()))
	if id := j.spec.DeviceByGUID(own.At.Switch); id != topospec.None && peer == topospec.EndAt(own.At) {
		j.root(id)
	} else {
		j.root(topospec.None)
	}
	r := j.Link(own)
	if r.Verdict != Verified && j.mode == topospec.Enforce {
		r.Alarm, r.Page = true, true
	}
	return r
}

// AttachSwitch records that the Subnet Manager runs on a switch.
func (j *Judge) AttachSwitch(sw ib.GUID) Ruling {
	id := j.spec.DeviceByGUID(sw)
	if id == topospec.None || j.spec.Device(id).Kind != topospec.KindSwitch {
		j.root(topospec.None)
		return Ruling{Verdict: Unknown, Alarm: true, Page: j.mode == topospec.Enforce}
	}
	j.root(id)
	return Ruling{Verdict: Verified, Action: Admit, Would: Admit, State: StateVerified}
}

// root makes a switch the one that all verification begins at.
func (j *Judge) root(id topospec.DeviceID) {
	if j.rooted == id {
		return
	}
	old := j.rooted
	j.rooted = id
	for _, x := range [2]topospec.DeviceID{old, id} {
		if x != topospec.None {
			j.requeue(x)
		}
	}
	j.again()
}

// Down records that a switch port has no link any more. A port that was disabled for a wrong link stays disabled until it
// is released.
func (j *Judge) Down(at ib.Place) {
	rec := j.find(at)
	if rec == nil || rec.state == StateDark || rec.state == StateDisabled {
		return
	}
	from := rec.state
	r := Ruling{State: StateDark}
	if link, peer := j.spec.LinkAt(j.spec.SlotOf(topospec.EndAt(at))); link != nil && (link.State == topospec.Active || link.State == topospec.Maintenance) {
		r.Verdict, r.Expected, r.Alarm = Missing, peer, j.mode > topospec.Observe
	}
	j.count(at, rec, StateDark, 0)
	was := rec.was
	*rec = record{verdict: r.Verdict, was: was}
	j.changes = append(j.changes, Change{At: at, From: from, To: StateDark, Ruling: r})
	delete(j.extra, at)
	j.again()
}

// Forget records that a switch is not in the fabric any more: the facts behind its ports are not known. It must be called
// for every switch that the Subnet Manager drops. Otherwise two that were cut off together would vouch for each other.
func (j *Judge) Forget(sw ib.GUID) {
	id := j.spec.DeviceByGUID(sw)
	if id == topospec.None {
		return
	}
	for port := range j.spec.PortsOf(id) {
		j.Down(ib.Place{Switch: sw, Port: port})
	}
}

// Release releases a port that was disabled, or that waits for an operator. The next fact is judged from the beginning. by
// and why must not be empty.
func (j *Judge) Release(at ib.Place, by, why string) error {
	rec := j.find(at)
	switch {
	case by == "" || why == "":
		return fmt.Errorf("release %v: %w: say who does it and why", at, ErrRefused)
	case rec == nil || rec.state != StateDisabled && rec.state != StateHeld:
		return fmt.Errorf("release %v: it is not disabled", at)
	}
	from := rec.state
	c := Change{At: at, From: from, To: StateReleased, Seen: rec.seen, By: by, Why: why, Ruling: Ruling{Verdict: rec.verdict, State: StateReleased}}
	j.count(at, rec, StateReleased, 0)
	rec.seen = Seen{}
	j.changes = append(j.changes, c)
	return nil
}

// Activate puts another specification into force, between two sweeps: all that
// was seen is judged by it. A port that was disabled and that the new
// specification would not disable comes back as released: it is to be enabled
// and asked again. It costs a pass over the fabric.
func (j *Judge) Activate(spec *topospec.Spec) {
	facts, states := j.facts(), map[ib.Place]record{}
	for at := range facts {
		states[at] = *j.find(at)
	}
	var root ib.GUID
	if j.rooted != topospec.None {
		root = j.spec.Device(j.rooted).GUID
	}
	j.take(spec)
	j.rooted = spec.DeviceByGUID(root)
	told := len(j.changes)
	places := order(facts)
	for _, at := range places {
		if rec := j.recordOf(at); rec != nil && states[at].state != StateDisabled {
			rec.was = states[at].was
			j.apply(rec, facts[at])
		}
	}
	j.changes = j.changes[:told]
	for _, at := range places {
		j.tellActivated(at, facts[at], states[at])
	}
}

// tellActivated moves a port into a new specification and records the change of its state or verdict.
func (j *Judge) tellActivated(at ib.Place, seen Seen, was record) {
	rec := j.recordOf(at)
	if rec == nil {
		return
	}
	r := j.compare(&seen)
	r.Action, r.State = j.act(&r, &seen), rec.state
	if was.state == StateDisabled {
		r.State = StateReleased
		if r.Would == Disable || r.Verdict == Held {
			r.State, r.Action = StateDisabled, Disable
			j.count(at, rec, StateDisabled, seen.GUID)
			rec.seen, rec.verdict, rec.action = seen, r.Verdict, Disable
		} else {
			rec.state = StateReleased
		}
	}
	if was.state != r.State || was.verdict != r.Verdict {
		r.Pair = rec.pair
		j.changes = append(j.changes, Change{At: at, From: was.state, To: r.State, Seen: seen, Ruling: r})
	}
}

// facts returns all facts seen.
func (j *Judge) facts() map[ib.Place]Seen {
	all := make(map[ib.Place]Seen, len(j.ports)/2)
	for i := range j.ports {
		if s := j.ports[i].seen; s.GUID != 0 {
			all[s.At] = s
		}
	}
	for at, rec := range j.extra {
		all[at] = rec.seen
	}
	return all
}

// MissingLinks returns the links that must be up and have no end that was seen, in the order of the specification. It walks
// all links: it is for reports.
func (j *Judge) MissingLinks() iter.Seq[*topospec.Link] {
	return func(yield func(*topospec.Link) bool) {
		links := j.spec.Revision().Links
		for i := range links {
			l := &links[i]
			if (l.State == topospec.Active || l.State == topospec.Maintenance) && j.good[i]+j.bad[i] == 0 && !yield(l) {
				return
			}
		}
	}
}

// NumMissing returns the number of links in MissingLinks, at no cost.
func (j *Judge) NumMissing() int { return j.spec.NumActive() - j.lit }
