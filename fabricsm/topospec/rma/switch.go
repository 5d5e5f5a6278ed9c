package rma

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/judge"
)

// Switch is the replacement of one switch: all its ports move to the new GUID in
// one revision, and the ports of its hosts stay switched off until its links to
// other switches are verified.
type Switch struct {
	Ticket   string
	Old, New ib.GUID
	State    State
	hosts    []topospec.End // ports of hosts, to be opened at the end
}

// ReplaceSwitch makes the first revision: the new switch, which must be a spare of
// the same model, has the place and links of the old one, which is retired with its
// aggregation node. Links that lead to hosts are disabled. an is the aggregation
// node of the new switch, a spare too, 0 if it has none.
func ReplaceSwitch(s *topospec.Spec, old, now, an ib.GUID, ticket, by string) (*Switch, *topospec.Revision, error) {
	from, to := s.DeviceByGUID(old), s.DeviceByGUID(now)
	switch {
	case ticket == "" || by == "":
		return nil, nil, fmt.Errorf("replace switch %v: %w: name a ticket and who does it", old, ErrRefused)
	case from == topospec.None || s.Device(from).Kind != topospec.KindSwitch:
		return nil, nil, fmt.Errorf("replace switch %v: %w: the specification has no such switch", old, ErrRefused)
	case to == topospec.None || s.Device(to).Stock != topospec.Spare || s.Device(to).Kind != topospec.KindSwitch || s.Device(to).Model != s.Device(from).Model:
		return nil, nil, fmt.Errorf("replace switch %v: %w: %v is no spare switch of model %q", old, ErrRefused, now, s.Device(from).Model)
	}
	w := &Switch{Ticket: ticket, Old: old, New: now}
	r := s.Revision().Clone()
	for _, slot := range s.PortsOf(from) {
		l, peer := s.LinkAt(slot)
		if l == nil || peer.IsZero() {
			continue
		}
		if d := s.Device(s.DeviceByGUID(peer.GUID)); d.Kind == topospec.KindAN {
			if an == 0 {
				return nil, nil, fmt.Errorf("replace switch %v: %w: it has the aggregation node %v; name that of the new switch", old, ErrRefused, d.GUID)
			}
			if err := replace(r, d.GUID, an); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := replace(r, old, now); err != nil {
		return nil, nil, err
	}
	for i := range r.Links {
		l := &r.Links[i]
		if l.A.GUID == now && l.State == topospec.Active && w.leadsOut(r, l) {
			l.State, l.Reason = topospec.Disabled, "RMA "+ticket
			w.hosts = append(w.hosts, l.A)
		}
	}
	return w, r, r.Validate("replacement of " + old.String())
}

// leadsOut reports a link to something that is neither a switch nor inside one.
func (w *Switch) leadsOut(r *topospec.Revision, l *topospec.Link) bool {
	for i := range r.Devices {
		if d := &r.Devices[i]; d.GUID == l.B.GUID {
			return (d.Kind == topospec.KindHCA || d.Kind == topospec.KindRouter || d.Kind == topospec.KindAny) && d.Role != topospec.RoleSM
		}
	}
	return true
}

// Open makes the second revision, in which the ports of hosts are active again. It
// refuses until every link of the new switch to another one is verified.
func (w *Switch) Open(j *judge.Judge) (*topospec.Revision, error) {
	s := j.Spec()
	id := s.DeviceByGUID(w.New)
	if w.State != Open || id == topospec.None {
		return nil, fmt.Errorf("replace switch %v: %w: it is %v", w.Old, ErrRefused, w.State)
	}
	for port, slot := range s.PortsOf(id) {
		l, peer := s.LinkAt(slot)
		if l == nil || l.State != topospec.Active || s.Device(s.DeviceByGUID(peer.GUID)).Kind != topospec.KindSwitch {
			continue
		}
		if !j.IsVerified(ib.Place{Switch: w.New, Port: port}) && !j.IsVerified(peer.Place()) {
			return nil, fmt.Errorf("replace switch %v: %w: %s ↔ %s is not verified yet", w.Old, ErrRefused, s.Where(topospec.End{GUID: w.New, Port: port}), s.Where(peer))
		}
	}
	r := s.Revision().Clone()
	for i := range r.Links {
		for _, at := range w.hosts {
			if l := &r.Links[i]; l.A == at && l.State == topospec.Disabled {
				l.State, l.Reason = topospec.Active, ""
			}
		}
	}
	w.State = Accepted
	return r, r.Validate("replacement of " + w.Old.String())
}
