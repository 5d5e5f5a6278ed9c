// Package rma replaces an adapter or a switch as a flow. A window is opened for one place and a limited time, a candidate
// is seen and checked, and an operator accepts it. A revision follows in which the old GUID is retired. Only the place and
// the two GUIDs differ in it.
//
// Flows are values without a clock, which can be stored as JSON: times are arguments. A flow grants nothing; its result is
// a revision, which needs the approval of every revision.
package rma

import (
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// State is where a replacement is.
type State uint8

// States of a replacement.
const (
	Open      State = iota // the window is open and nothing was seen
	Candidate              // one device is there that may be the new one
	Attested               // the host, or the person who replaced the switch, proved it
	Replaced               // of a switch: it has its place, and the ports of its hosts are off
	Accepted               // a revision was made
	Expired                // time ran out
	Cancelled
)

var stateNames = []string{"open", "candidate", "attested", "replaced", "accepted", "expired", "cancelled"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText returns the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *State) UnmarshalText(b []byte) error {
	for i, name := range stateNames {
		if name == string(b) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("state %.40q: want one of %q", b, stateNames)
}

// Over reports whether the flow has ended.
func (s State) Over() bool { return s >= Accepted }

// ErrRefused means that a step may not be done.
var ErrRefused = errors.New("refused")

// maxWindow bounds how long a window may be open.
const maxWindow = 14 * 24 * time.Hour

// Adapter is the replacement of one adapter.
type Adapter struct {
	Ticket  string       `json:"ticket"`
	Old     ib.GUID      `json:"old"`
	New     ib.GUID      `json:"new,omitzero"` // 0 until a candidate is there
	At      topospec.End `json:"at"`
	Model   string       `json:"model"`
	Host    string       `json:"host"`
	State   State        `json:"state"`
	Opened  time.Time    `json:"opened"`
	Expires time.Time    `json:"expires"`
	By      string       `json:"by"`
}

// OpenAdapter opens a window for an adapter of the revision in force. The revision that it returns puts the port under
// maintenance: it must be activated before the adapter is taken out.
func OpenAdapter(s *topospec.Spec, old ib.GUID, ticket, by string, now time.Time, window time.Duration) (*Adapter, *topospec.Revision, error) {
	id := s.DeviceByGUID(old)
	if err := checkWindow(old, ticket, by, window); err != nil {
		return nil, nil, err
	}
	switch {
	case id == topospec.None || s.Device(id).Kind != topospec.KindHCA || s.Device(id).Stock != topospec.InUse:
		return nil, nil, fmt.Errorf("replace %v: %w: the specification has no such adapter in use", old, ErrRefused)
	case s.Device(id).Role == topospec.RoleSM:
		return nil, nil, fmt.Errorf("replace %v: %w: it is a Subnet Manager's; hand over to another one and draft a revision for it", old, ErrRefused)
	}
	at := s.Home(id)
	if at.IsZero() {
		return nil, nil, fmt.Errorf("replace %v: %w: it has no link", old, ErrRefused)
	}
	r := s.Revision().Clone()
	for i := range r.Links {
		if l := &r.Links[i]; (l.A.GUID == old || l.B.GUID == old) && l.State == topospec.Active {
			l.State, l.Reason = topospec.Maintenance, "RMA "+ticket
		}
	}
	d := s.Device(id)
	return &Adapter{Ticket: ticket, Old: old, At: at, Model: d.Model, Host: d.Host, Opened: now, Expires: now.Add(window), By: by}, r, nil
}

func checkWindow(old ib.GUID, ticket, by string, window time.Duration) error {
	switch {
	case ticket == "" || by == "":
		return fmt.Errorf("replace %v: %w: name a ticket and who opens it", old, ErrRefused)
	case window <= 0 || window > maxWindow:
		return fmt.Errorf("replace %v: %w: a window of %v: want up to %v", old, ErrRefused, window, maxWindow)
	default:
		return nil
	}
}

// Tick checks the time: a window that was not closed expires. It reports whether this happened now; the port must leave
// maintenance then, see Close.
func (a *Adapter) Tick(now time.Time) bool {
	if !a.State.Over() && !now.Before(a.Expires) {
		a.State = Expired
		return true
	}
	return false
}

// Seen records a device that the judge holds as rma_candidate. If a second device is seen at the place, the first one is no
// candidate any more: no race can win a window.
func (a *Adapter) Seen(s *topospec.Spec, at topospec.End, guid ib.GUID, now time.Time) error {
	a.Tick(now)
	id := s.DeviceByGUID(guid)
	switch {
	case a.State.Over():
		return fmt.Errorf("replace %v: %w: the window is %v", a.Old, ErrRefused, a.State)
	case at != a.At:
		return fmt.Errorf("replace %v: %w: %v was seen at %v, the window is for %v", a.Old, ErrRefused, guid, at, a.At)
	case id == topospec.None || s.Device(id).Stock != topospec.Spare:
		return fmt.Errorf("replace %v: %w: %v is no spare", a.Old, ErrRefused, guid)
	case s.Device(id).Model != a.Model || s.Device(id).Kind != topospec.KindHCA:
		return fmt.Errorf("replace %v: %w: %v is a %s, the old one a %s", a.Old, ErrRefused, guid, s.Device(id).Model, a.Model)
	case a.State != Open && a.New != guid:
		a.State, a.New = Open, 0
		return fmt.Errorf("replace %v: %w: two devices were seen at %v; leave one in, it counts from now on", a.Old, ErrRefused, at)
	}
	if a.State == Open {
		a.State, a.New = Candidate, guid
	}
	return nil
}

// Proof is what attestation of the host says of the new adapter.
type Proof struct {
	Host  string  // that the specification has for the old one
	GUID  ib.GUID // of the adapter, as measured
	PSID  string  // firmware parameter set
	Fresh bool    // the quote is newer than the candidate, firmware and lock are as they must be
}

// Attest takes the proof of the host.
func (a *Adapter) Attest(s *topospec.Spec, p Proof, now time.Time) error {
	a.Tick(now)
	id, spare := s.DeviceByGUID(a.Old), s.DeviceByGUID(a.New)
	switch {
	case a.State != Candidate:
		return fmt.Errorf("replace %v: %w: it is %v, there is no candidate to attest", a.Old, ErrRefused, a.State)
	case !p.Fresh:
		return fmt.Errorf("replace %v: %w: the proof is old, or firmware or lock are not as they must be", a.Old, ErrRefused)
	case p.GUID != a.New:
		return fmt.Errorf("replace %v: %w: the host attests %v, seen is %v", a.Old, ErrRefused, p.GUID, a.New)
	case id == topospec.None || s.Device(id).Host != p.Host:
		return fmt.Errorf("replace %v: %w: the proof is of host %q", a.Old, ErrRefused, p.Host)
	case spare == topospec.None:
		return fmt.Errorf("replace %v: %w: %v is not in the specification any more", a.Old, ErrRefused, a.New)
	case s.Device(spare).PSID != "" && s.Device(spare).PSID != p.PSID:
		return fmt.Errorf("replace %v: %w: the proof has PSID %s, inventory %s", a.Old, ErrRefused, p.PSID, s.Device(spare).PSID)
	}
	a.State = Attested
	return nil
}

// Accept creates the revision in which the new adapter has the place of the old one, which is retired. by may be empty if
// policy accepts spares without an operator. Grants of the old GUID (keys, memberships) move when the revision is
// activated.
func (a *Adapter) Accept(s *topospec.Spec, by string, now time.Time) (*topospec.Revision, error) {
	a.Tick(now)
	switch {
	case a.State != Attested:
		return nil, fmt.Errorf("replace %v: %w: it is %v", a.Old, ErrRefused, a.State)
	case by == "" && !s.Revision().Policy.Stocked:
		return nil, fmt.Errorf("replace %v: %w: policy wants a person to accept it", a.Old, ErrRefused)
	}
	r := s.Revision().Clone()
	if err := replace(r, a.Old, a.New); err != nil {
		return nil, err
	}
	a.close(r)
	a.State = Accepted
	return r, r.Validate("replacement of " + a.Old.String())
}

// Close makes the revision that ends maintenance after a window expired or was
// cancelled: the old adapter is expected again.
func (a *Adapter) Close(s *topospec.Spec) (*topospec.Revision, error) {
	if a.State == Accepted {
		return nil, fmt.Errorf("replace %v: %w: it is accepted", a.Old, ErrRefused)
	}
	if a.State != Expired {
		a.State = Cancelled
	}
	r := s.Revision().Clone()
	a.close(r)
	return r, nil
}

// close takes the ports of the flow out of maintenance.
func (a *Adapter) close(r *topospec.Revision) {
	for i := range r.Links {
		l := &r.Links[i]
		for _, e := range [2]topospec.End{l.A, l.B} {
			if l.State == topospec.Maintenance && (e.GUID == a.Old || e.GUID == a.New && a.New != 0) {
				l.State, l.Reason = topospec.Active, ""
			}
		}
	}
}

// replace moves a device's place and links to a spare, and retires the device.
func replace(r *topospec.Revision, old, now ib.GUID) error {
	var from, to *topospec.Device
	for i := range r.Devices {
		switch r.Devices[i].GUID {
		case old:
			from = &r.Devices[i]
		case now:
			to = &r.Devices[i]
		}
	}
	if from == nil || to == nil || to.Stock != topospec.Spare || from.Stock != topospec.InUse {
		return fmt.Errorf("replace %v by %v: %w: the one must be in use and the other a spare", old, now, ErrRefused)
	}
	kept := *to
	*to = *from
	to.GUID, to.Serial, to.SystemImage, to.PortGUIDs, to.Model = kept.GUID, kept.Serial, kept.SystemImage, kept.PortGUIDs, kept.Model
	if kept.PSID != "" {
		to.PSID = kept.PSID
	}
	*from = topospec.Device{GUID: from.GUID, Kind: from.Kind, Model: from.Model, Serial: from.Serial, Stock: topospec.Retired, Ports: from.Ports}
	for i := range r.Links {
		l := &r.Links[i]
		if l.A.GUID == old {
			l.A.GUID = now
		}
		if l.B.GUID == old {
			l.B.GUID = now
		}
	}
	return nil
}
