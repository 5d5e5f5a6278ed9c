package rma

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// Switch is the replacement of one switch, in three revisions: its cables to other
// switches are put under maintenance, so that the new one is held and not cut off when
// it shows up; all its ports move to the new GUID, with those of hosts switched off;
// and when its cables to other switches are verified the hosts' ports are opened.
type Switch struct {
	Ticket  string    `json:"ticket"`
	Old     ib.GUID   `json:"old"`
	New     ib.GUID   `json:"new"`
	AN      ib.GUID   `json:"aggregation_node,omitzero"` // of the new switch, 0: it has none
	State   State     `json:"state"`
	Opened  time.Time `json:"opened"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by"`
}

// OpenSwitch opens a window for a switch of the revision in force. It returns the revision that puts its cables to other
// switches under maintenance. now must be a spare of its model, and an the aggregation node of now, a spare too, 0 if it
// has none.
func OpenSwitch(s *topospec.Spec, old, now, an ib.GUID, ticket, by string, at time.Time, window time.Duration) (*Switch, *topospec.Revision, error) {
	if err := checkWindow(old, ticket, by, window); err != nil {
		return nil, nil, err
	}
	w := &Switch{Ticket: ticket, Old: old, New: now, AN: an, Opened: at, Expires: at.Add(window), By: by}
	if _, err := w.replaced(s); err != nil {
		return nil, nil, err
	}
	r := s.Revision().Clone()
	for i := range r.Links {
		if l := &r.Links[i]; w.isTrunk(s, l, old) && l.State == topospec.Active {
			l.State, l.Reason = topospec.Maintenance, w.reason()
		}
	}
	return w, r, nil
}

func (w *Switch) reason() string { return "RMA " + w.Ticket }

// Tick lets time pass: a window in which nothing was replaced expires. It reports that
// this happened now.
func (w *Switch) Tick(now time.Time) bool {
	if w.State < Replaced && !now.Before(w.Expires) {
		w.State = Expired
		return true
	}
	return false
}

// Seen records a device that the judge holds as rma_candidate at the far end of one of its cables.
func (w *Switch) Seen(guid ib.GUID, now time.Time) error {
	w.Tick(now)
	switch {
	case w.State.Over() || w.State == Replaced:
		return fmt.Errorf("replace switch %v: %w: the window is %v", w.Old, ErrRefused, w.State)
	case guid != w.New:
		return fmt.Errorf("replace switch %v: %w: %v was seen, the window is for %v", w.Old, ErrRefused, guid, w.New)
	}
	w.State = Candidate
	return nil
}

// Replace makes the revision in which the new switch has the place and the links of the
// old one, which is retired with its aggregation node. The ports of hosts are off.
func (w *Switch) Replace(s *topospec.Spec, now time.Time) (*topospec.Revision, error) {
	w.Tick(now)
	if w.State.Over() || w.State == Replaced {
		return nil, fmt.Errorf("replace switch %v: %w: it is %v", w.Old, ErrRefused, w.State)
	}
	r, err := w.replaced(s)
	if err != nil {
		return nil, err
	}
	w.State = Replaced
	return r, nil
}

func (w *Switch) replaced(s *topospec.Spec) (*topospec.Revision, error) {
	from, to := s.DeviceByGUID(w.Old), s.DeviceByGUID(w.New)
	switch {
	case from == topospec.None || s.Device(from).Kind != topospec.KindSwitch || s.Device(from).Stock != topospec.InUse:
		return nil, fmt.Errorf("replace switch %v: %w: the specification has no such switch in use", w.Old, ErrRefused)
	case to == topospec.None || s.Device(to).Stock != topospec.Spare || s.Device(to).Kind != topospec.KindSwitch || s.Device(to).Model != s.Device(from).Model:
		return nil, fmt.Errorf("replace switch %v: %w: %v is no spare switch of model %q", w.Old, ErrRefused, w.New, s.Device(from).Model)
	}
	r := s.Revision().Clone()
	if err := w.replaceInside(s, r, from); err != nil {
		return nil, err
	}
	if err := replace(r, w.Old, w.New); err != nil {
		return nil, err
	}
	for i := range r.Links {
		l := &r.Links[i]
		switch {
		case l.A.GUID != w.New && l.B.GUID != w.New:
		case l.State == topospec.Maintenance && l.Reason == w.reason():
			l.State, l.Reason = topospec.Active, ""
		case l.A.GUID == w.New && l.State == topospec.Active && leadsOut(r, l):
			l.State, l.Reason = topospec.Disabled, w.reason()
		}
	}
	return r, r.Validate("replacement of " + w.Old.String())
}

// replaceInside moves the place of the old switch's aggregation node to that of the new one.
func (w *Switch) replaceInside(s *topospec.Spec, r *topospec.Revision, from topospec.DeviceID) error {
	for _, slot := range s.PortsOf(from) {
		l, peer := s.LinkAt(slot)
		if l == nil || peer.IsZero() {
			continue
		}
		d := s.Device(s.DeviceByGUID(peer.GUID))
		if d.Kind != topospec.KindAN {
			continue
		}
		if w.AN == 0 {
			return fmt.Errorf("replace switch %v: %w: it has the aggregation node %v; name that of the new switch", w.Old, ErrRefused, d.GUID)
		}
		if err := replace(r, d.GUID, w.AN); err != nil {
			return err
		}
	}
	return nil
}

// isTrunk reports whether a link is a cable between a switch and another one.
func (w *Switch) isTrunk(s *topospec.Spec, l *topospec.Link, sw ib.GUID) bool {
	if l.B.IsZero() || l.A.GUID != sw && l.B.GUID != sw {
		return false
	}
	return s.Device(s.DeviceByGUID(l.A.GUID)).Kind == topospec.KindSwitch && s.Device(s.DeviceByGUID(l.B.GUID)).Kind == topospec.KindSwitch
}

// leadsOut reports whether a link leads to a device that is neither a switch nor inside one, and not a Subnet Manager.
func leadsOut(r *topospec.Revision, l *topospec.Link) bool {
	for i := range r.Devices {
		if d := &r.Devices[i]; d.GUID == l.B.GUID {
			return (d.Kind == topospec.KindHCA || d.Kind == topospec.KindRouter || d.Kind == topospec.KindAny) && d.Role != topospec.RoleSM
		}
	}
	return false // a port without a cable
}

// Open creates the last revision, in which the ports of hosts are active again. It returns an error until the judge has
// verified every cable of the new switch to another one, under the revision of Replace.
func (w *Switch) Open(j *verify.Judge) (*topospec.Revision, error) {
	s := j.Spec()
	id := s.DeviceByGUID(w.New)
	if w.State != Replaced || id == topospec.None {
		return nil, fmt.Errorf("replace switch %v: %w: it is %v", w.Old, ErrRefused, w.State)
	}
	for port, slot := range s.PortsOf(id) {
		l, peer := s.LinkAt(slot)
		if l == nil || l.State != topospec.Active || !w.isTrunk(s, l, w.New) {
			continue
		}
		if !j.IsVerified(ib.Place{Switch: w.New, Port: port}) && !j.IsVerified(peer.Place()) {
			return nil, fmt.Errorf("replace switch %v: %w: %s ↔ %s is not verified yet", w.Old, ErrRefused, s.Where(topospec.End{GUID: w.New, Port: port}), s.Where(peer))
		}
	}
	r := s.Revision().Clone()
	for i := range r.Links {
		if l := &r.Links[i]; l.A.GUID == w.New && l.State == topospec.Disabled && l.Reason == w.reason() {
			l.State, l.Reason = topospec.Active, ""
		}
	}
	w.State = Accepted
	return r, r.Validate("replacement of " + w.Old.String())
}

// Close makes the revision that ends maintenance after a window expired or was
// cancelled, before anything was replaced: the old switch is expected again.
func (w *Switch) Close(s *topospec.Spec) (*topospec.Revision, error) {
	if w.State == Accepted || w.State == Replaced {
		return nil, fmt.Errorf("replace switch %v: %w: it is %v; roll the topology back", w.Old, ErrRefused, w.State)
	}
	if w.State != Expired {
		w.State = Cancelled
	}
	r := s.Revision().Clone()
	for i := range r.Links {
		if l := &r.Links[i]; l.State == topospec.Maintenance && l.Reason == w.reason() {
			l.State, l.Reason = topospec.Active, ""
		}
	}
	return r, nil
}
