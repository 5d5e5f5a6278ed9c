package inform

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm"
)

// Set subscribes, or ends a subscription. to is how the request came.
func (r *Registry) Set(a portindex.Asker, to Address, info *mad.InformInfo) (ans Answer) {
	r.eff = &ans.Effects
	var from *portindex.EndPort
	if r.fabric != nil {
		from = r.fabric.EndPort(a.Port)
	}
	switch {
	case from == nil:
		return Answer{Verdict: trust.UnknownSource}
	case info.IsGeneric > 1:
		return refuse(&a, info, BadIsGeneric)
	case info.Subscribe > 1:
		return refuse(&a, info, BadSubscribe)
	}
	ans.Record = *info
	if info.Subscribe == 0 {
		// The given queue pair is compared with the one that subscribed.
		s := r.subs[identityOf(a.As, info.QPN, info)]
		if s == nil || s.Address.QP != a.QP {
			return refuse(&a, info, NotFound)
		}
		r.remove(s, Event{Kind: Ended, Asker: a})
		return ans
	}
	why, looks := r.may(&a, from, info)
	if ans.Looks = looks; why != NoReason {
		no := refuse(&a, info, why)
		no.Looks = looks
		return no
	}
	n := &Subscription{Port: from.GUID, As: a.As, Info: *info, Address: to, Trusted: a.Trusted, Epoch: a.Epoch}
	n.Info.QPN = a.QP
	id := identityOf(a.As, a.QP, info)
	if s := r.subs[id]; s != nil {
		n.Enum = s.Enum
		if *n != *s.Subscription {
			s.Subscription = n
			r.all = r.all.With(key{n.As, n.Enum}, n)
			ans.Save = append(ans.Save, factOf(n))
		}
		return ans
	}
	if r.all.Len() >= r.cfg.MaxRecords {
		return refuse(&a, info, TooMany)
	}
	if v := r.cfg.Limits.Room(&r.cfg.Trust, trust.Subscriptions, a.As, a.Trusted); v != trust.OK {
		return Answer{Verdict: v}
	}
	var ok bool
	if n.Enum, ok = r.freeEnum(a.As); !ok {
		return refuse(&a, info, TooMany)
	}
	r.add(n)
	ans.Save = append(ans.Save, factOf(n))
	ans.Events = append(ans.Events, Event{Kind: Subscribed, Asker: a, Port: n.As, Info: n.Info})
	return ans
}

// may checks a subscription request, and returns how many LIDs it looked at. Notices that match a wildcard are judged at
// delivery.
func (r *Registry) may(a *portindex.Asker, from *portindex.EndPort, i *mad.InformInfo) (why Reason, looks int) {
	if !a.Trusted && i.IsGeneric == 1 && i.TrapNumber != mad.AllTraps && trust.Secret(true, uint16(i.TrapNumber)) {
		return SecurityTraps, 0
	}
	sees := func(e *portindex.EndPort) bool { return a.Trusted || e != nil && portindex.Sees(from, e, false) }
	if i.GID != (ib.GID{}) {
		if p := i.GID.Prefix(); p != r.cfg.Prefix && p != ib.DefaultPrefix || !sees(r.fabric.ByGUID(i.GID.GUID())) {
			return NotInPartition, 0
		}
		return NoReason, 0
	}
	first, last := i.LIDRangeBegin, i.LIDRangeEnd
	if first == mad.AllLIDs {
		return NoReason, 0
	}
	if last == 0 {
		last = first
	}
	if !first.IsUnicast() || !last.IsUnicast() || last < first {
		return BadRange, 0
	}
	if a.Trusted {
		return NoReason, 0
	}
	// A LID that no port has is handled like a LID of a foreign port.
	for lid := first; ; lid++ {
		looks++
		if !sees(r.fabric.ByLID(lid)) {
			return NotInPartition, looks
		}
		if lid == last {
			return NoReason, looks
		}
	}
}

// freeEnum returns the lowest number that no subscription of a GUID has.
func (r *Registry) freeEnum(as ib.GUID) (uint16, bool) {
	n := uint16(0)
	if _, used := r.all.Get(key{as, 0}); !used {
		return 0, true
	}
	for {
		k, _, ok := r.all.After(key{as, n})
		if !ok || k.as != as || k.enum > n+1 {
			return n + 1, n+1 != 0
		}
		if n = k.enum; n == ^uint16(0) {
			return 0, false
		}
	}
}

// Distrust ends the trust in subscriptions that were made with an SA_Key before an epoch, which is no longer accepted. They
// stay, and get only the notices for untrusted subscribers.
func (r *Registry) Distrust(before uint64) (e Effects) {
	var old []*Subscription
	for s := range r.All {
		if s.Trusted && s.Epoch < before {
			old = append(old, s)
		}
	}
	for _, s := range old {
		n := *s
		n.Trusted, n.Epoch = false, 0
		r.subs[identityOf(s.As, s.Info.QPN, &s.Info)].Subscription = &n
		r.all = r.all.With(key{n.As, n.Enum}, &n)
		e.Save = append(e.Save, factOf(&n))
		e.Events = append(e.Events, Event{Kind: Distrusted, Port: n.As, Info: n.Info})
	}
	return e
}

// add takes a subscription in.
func (r *Registry) add(n *Subscription) {
	p := r.ports[n.Port]
	if p == nil {
		p = &party{port: n.Port, subs: make(map[*sub]bool)}
		r.ports[n.Port] = p
	}
	r.last++
	s := &sub{Subscription: n, id: r.last, party: p}
	p.subs[s] = true
	r.subs[identityOf(n.As, n.Info.QPN, &n.Info)] = s
	r.all = r.all.With(key{n.As, n.Enum}, n)
	r.cfg.Limits.Add(trust.Subscriptions, n.As)
	t := topicOf(n)
	of, ok := r.heard.Get(t)
	if !ok {
		of = registry.NewMap[uint64, *sub](compareIDs)
	}
	r.heard = r.heard.With(t, of.With(s.id, s))
}

func compareIDs(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func topicOf(n *Subscription) topic { return topic{n.Info.IsGeneric, n.Info.TrapNumber} }

// remove deletes a subscription with all its reports, and records the reason.
func (r *Registry) remove(s *sub, e Event) {
	p := s.party
	r.quiet(s)
	s.gone = true
	delete(p.subs, s)
	if len(p.subs) == 0 {
		r.here(p)
		delete(r.ports, p.port)
	}
	delete(r.subs, identityOf(s.As, s.Info.QPN, &s.Info))
	r.all = r.all.Without(key{s.As, s.Enum})
	r.cfg.Limits.Remove(trust.Subscriptions, s.As)
	t := topicOf(s.Subscription)
	of, _ := r.heard.Get(t)
	if of = of.Without(s.id); of.Len() > 0 {
		r.heard = r.heard.With(t, of)
	} else {
		r.heard = r.heard.Without(t)
	}
	r.eff.Save = append(r.eff.Save, sm.Fact{Kind: sm.FactSASubscription, Name: factName(s.As, s.Enum)})
	e.Port, e.Info = s.As, s.Info
	r.eff.Events = append(r.eff.Events, e)
}

// refuse returns a refusal: the returned record subscribes to nothing (IBTA volume 1, o13-13.1.1).
func refuse(a *portindex.Asker, info *mad.InformInfo, why Reason) Answer {
	no := *info
	no.Subscribe = 0
	return Answer{Status: why.status(), Record: no, Effects: Effects{Events: []Event{{Kind: Refused, Reason: why, Asker: *a, Port: a.As, Info: *info}}}}
}
