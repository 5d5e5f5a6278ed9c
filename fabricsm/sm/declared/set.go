package declared

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// Set puts another declared topology, or another mode, into force. It looks
// at the whole fabric: persons do that, not devices.
func (l *Law) Set(in *Order, began bool) {
	switch {
	case in.By == "":
		l.act.Report(&TopologyRefused{Reason: "a declared topology comes from somebody: say who"})
		return
	case in.Spec == nil:
		l.repeal(in.By)
		return
	}
	if in.Mode == topospec.Enforce && began {
		if why := l.foretell(in); why != "" {
			l.act.Report(&TopologyRefused{Reason: why, Revision: in.Spec.Revision().Number})
			return
		}
	}
	l.wanted, l.by, l.back, l.guard = in.Mode, in.By, in.Back, nil
	l.silent = l.judge == nil || l.judge.Spec().Digest() != in.Spec.Digest()
	if l.silent {
		l.since, l.rows.stale = l.fabric.Now(), true
	}
	switch {
	case l.judge == nil:
		l.judge = verify.New(in.Spec, topospec.Observe, l.isGuarded)
		l.feed(l.judge)
	case l.silent:
		was := l.judge.Spec()
		l.judge.Activate(in.Spec)
		l.act.Activated(was, in.Spec, in.Mode)
	}
	l.trial = in.Mode == topospec.Enforce && !began
	l.follow()
	l.silent = false
	l.setMode(in.Mode, in.By)
	l.judgedOwn(verify.Ruling{}, l.ownSwitch())
	l.retell()
	l.act.ImposeEverywhere()
	l.act.Retired()
	l.saveMode()
	spec := l.judge.Spec()
	l.act.Report(&TopologyInForce{Revision: spec.Revision().Number, Digest: spec.Digest(), Mode: l.judge.Mode(), By: in.By, Verified: l.judge.Verified(), Expected: spec.NumActive()})
}

// setMode changes the mode, if the judge allows it.
func (l *Law) setMode(m topospec.Mode, by string) bool {
	was := l.judge.Mode()
	if l.trial && m == topospec.Enforce && was != m {
		l.judge = verify.New(l.judge.Spec(), m, l.isGuarded)
		l.feed(l.judge)
	} else if err := l.judge.SetMode(m, by); err != nil {
		l.act.Report(&TopologyRefused{Reason: err.Error(), Revision: l.judge.Spec().Revision().Number})
		return false
	}
	if was != m {
		l.since = l.fabric.Now()
	}
	l.rows.stale = true
	l.follow()
	return true
}

// repeal ends the comparison, and releases the ports that it switched off.
func (l *Law) repeal(by string) {
	if l.judge == nil {
		return
	}
	for at := range l.rows.at {
		l.solved(at)
	}
	for _, row := range l.rows.list() {
		if row.State == verify.StateDisabled {
			l.reopenLater(row.Place)
		}
	}
	clear(l.rows.at)
	l.faults.Clear(fault.Key{Kind: fault.TopologyProtected, GUID: l.port})
	l.judge, l.guard, l.trial, l.rows.stale = nil, nil, false, true
	l.act.ImposeEverywhere()
	l.saveMode()
	l.act.Report(&TopologyInForce{By: by})
}

// ownSwitch returns the switch that we are attached to, or are.
func (l *Law) ownSwitch() ib.GUID {
	root, port := l.fabric.Root()
	if root == topo.None {
		return 0
	}
	if l.topo.Node(root).Type == ib.NodeSwitch {
		return l.topo.NodeGUID(root)
	}
	if peer := l.topo.Peer(port); peer != topo.None {
		return l.topo.NodeGUID(l.topo.Port(peer).Node)
	}
	return 0
}

// feed passes all that is known of the fabric to a judge.
func (l *Law) feed(j *verify.Judge) {
	root, port := l.fabric.Root()
	if root == topo.None {
		return
	}
	if l.topo.Node(root).Type == ib.NodeSwitch {
		j.AttachSwitch(l.topo.NodeGUID(root))
	} else if peer := l.topo.Peer(port); peer != topo.None && l.topo.IsExternal(peer) {
		l.own = l.factBehind(peer, port)
		j.Attach(l.own)
	}
	for at := range topo.PortID(l.topo.NumPorts()) {
		if l.fabric.IsAlive(l.topo.Port(at).Node) && l.topo.IsExternal(at) && l.topo.Peer(at) != topo.None {
			j.Link(l.factBehind(at, l.topo.Peer(at)))
		}
	}
}

// foretell says why a declared topology is not to be enforced on the fabric as it is
// now, "" if it may be.
func (l *Law) foretell(in *Order) string {
	spec := in.Spec
	j := verify.New(spec, topospec.Observe, nil)
	own := l.own
	l.feed(j)
	l.own = own
	wrong := make(map[ib.Place]bool)
	for _, ch := range j.Changes() {
		wrong[ch.At] = ch.Ruling.Would == verify.Disable
	}
	n := 0
	for _, is := range wrong {
		if is {
			n++
		}
	}
	limit := spec.Revision().Policy.Flips(spec.NumActive())
	if l.IsOn() {
		now := l.judge.Spec()
		limit = min(limit, now.Revision().Policy.Flips(now.NumActive()))
	}
	return refusal(j, n, limit, in.Back && l.Enforces())
}

// refusal says why a specification is not to be enforced: it guards against one
// that is empty, cut off, or of another fabric (threat T132). One that was enforced
// before is none of these (back).
func refusal(j *verify.Judge, wrong, limit int, back bool) string {
	rev := j.Spec().Revision()
	switch {
	case back && j.Rooted() && wrong <= limit:
		return ""
	case !j.Rooted():
		return fmt.Sprintf("revision %d is not enforced: it does not have the subnet manager where it is, so nothing could be verified; is it the topology of this fabric?", rev.Number)
	case !rev.Policy.Enough(j.Verified(), j.Spec().NumActive()):
		return fmt.Sprintf("revision %d is not enforced: %d of its %d links are verified (%v), %v are needed; is it the topology of this fabric?",
			rev.Number, j.Verified(), j.Spec().NumActive(), j.Score(), rev.Policy.Score())
	case wrong > 0 && !rev.Policy.Enough(j.Verified(), j.Verified()+wrong):
		return fmt.Sprintf("revision %d is not enforced: %d ports differ from it and only %d of the links that are up are in it; is it whole?", rev.Number, wrong, j.Verified())
	case wrong > limit:
		return fmt.Sprintf("revision %d is not enforced: it would switch off %d ports, at most %d are allowed at once; correct the topology, or raise max_flips in its policy", rev.Number, wrong, limit)
	default:
		return ""
	}
}

// Falls decides, once discovery has ended and before anything is written, whether enforcement begins. It reports whether
// it does not begin, so that more has to be discovered.
func (l *Law) Falls() bool {
	if !l.trial || !l.Enforces() || len(l.asking) > 0 || !l.judge.Rooted() && l.ownSwitch() == 0 {
		return false
	}
	l.trial = false
	why := refusal(l.judge, l.rows.wrong(), l.limit(), l.back)
	if why == "" {
		l.enforced()
		return false
	}
	l.problem(fault.Key{Kind: fault.TopologyRefused}, &TopologyRefused{Reason: why, Revision: l.judge.Spec().Revision().Number})
	l.setMode(topospec.Warn, "")
	l.saveMode()
	l.act.ImposeEverywhere()
	return true
}

func (l *Law) limit() int { return l.judge.Spec().Revision().Policy.Flips(l.judge.Spec().NumActive()) }

// enforced reports and saves the ports that are switched off from now on.
func (l *Law) enforced() {
	l.faults.Clear(fault.Key{Kind: fault.TopologyRefused})
	for _, row := range l.rows.list() {
		if row.State == verify.StateDisabled {
			l.save(row.Place)
		}
	}
	l.retell()
	l.saveMode()
}

// MayElect reports whether the declared topology allows this SM to become master. Where it is enforced and we are not at
// our declared place, a working fabric is not changed: an operator is needed.
func (l *Law) MayElect() bool {
	return !l.Enforces() || l.judge.Rooted() && !(l.trial && len(l.asking) > 0)
}

// Promotes puts enforcement into force that was asked for and refused, once the
// fabric allows it. It reports whether there is something to do for that.
func (l *Law) Promotes() bool {
	if !l.IsOn() || l.wanted != topospec.Enforce || l.Enforces() || l.judge.Verified() == l.rows.tried || l.rows.wrong() > l.limit() {
		return false
	}
	l.rows.tried = l.judge.Verified()
	if refusal(l.judge, l.rows.wrong(), l.limit(), false) != "" {
		return false
	}
	by := l.by
	if by == "" {
		by = "configuration"
	}
	if !l.setMode(topospec.Enforce, by) {
		return false
	}
	l.enforced()
	l.act.ImposeEverywhere()
	return true
}

// ReleaseMarked lets go of a port that an operator takes every mark from.
func (l *Law) ReleaseMarked(at ib.Place, why string) {
	if !l.IsOn() {
		return
	}
	if st, v, _ := l.judge.At(at); st == verify.StateDisabled || st == verify.StateHeld && v != verify.Held {
		if why == "" {
			why = "released with its marks"
		}
		l.Release(at, "operator", why)
	}
}

// Release lets go of a port.
func (l *Law) Release(at ib.Place, by, why string) {
	if !l.IsOn() {
		l.act.Report(&TopologyRefused{Reason: fmt.Sprintf("release %v: no declared topology is in force", at)})
		return
	}
	if err := l.judge.Release(at, health.CleanReason(by), health.CleanReason(why)); err != nil {
		l.act.Report(&TopologyRefused{Reason: err.Error()})
		return
	}
	l.follow()
}
