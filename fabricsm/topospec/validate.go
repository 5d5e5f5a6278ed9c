package topospec

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"portcullis/fabricsm/ib"
)

// Validate reports the problems that make a revision unfit for comparison: GUIDs or ports used twice, links to devices that
// are not there, ports that a device has not, text that cannot be shown. Package lint reports parts that are only
// suspicious. source is the name of the input in problems.
func (r *Revision) Validate(source string) error {
	v := validator{Problems: Problems{Source: source}, r: r, device: make(map[ib.GUID]*Device, len(r.Devices)), owner: make(map[End]int, 2*len(r.Links))}
	if len(r.Devices) > MaxDevices || len(r.Links) > MaxLinks {
		v.Add(0, "", fmt.Sprintf("%d devices and %d links, the most is %d and %d", len(r.Devices), len(r.Links), MaxDevices, MaxLinks), "divide the fabric")
		return v.Err()
	}
	if len(r.Links) == 0 {
		v.Add(0, "", "no link: an empty specification would disable the fabric", "check that the file is the one you meant and is complete")
	}
	v.text(0, "fabric", r.Fabric)
	v.devices()
	for i := range r.Links {
		v.link(i)
	}
	v.policy()
	return v.Err()
}

type validator struct {
	Problems
	r      *Revision
	device map[ib.GUID]*Device
	owner  map[End]int // index of the link that uses a port
}

func (v *validator) devices() {
	names := make(map[string]*Device, len(v.r.Devices))
	portOwner := make(map[ib.GUID]ib.GUID)
	for i := range v.r.Devices {
		d := &v.r.Devices[i]
		object := "device " + d.GUID.String()
		if why := Malformed(d.GUID); why != "" {
			v.Add(d.Line, object, "its GUID "+why, "read the label or firmware again")
		}
		if first, twice := v.device[d.GUID]; twice {
			v.Add(d.Line, object, "listed twice"+atLine(first.Line), "remove one of the two")
			continue
		}
		v.device[d.GUID] = d
		if other, twice := names[d.Name]; d.Name != "" && twice {
			v.Add(d.Line, object, fmt.Sprintf("name %q is that of %v, too%s", d.Name, other.GUID, atLine(other.Line)), "write a name of its own for each device")
		}
		names[d.Name] = d
		for _, s := range [...]struct{ what, text string }{
			{"model", d.Model},
			{"serial", d.Serial},
			{"site", d.Site},
			{"room", d.Room},
			{"rack", d.Rack},
			{"slot", d.Slot},
			{"name", d.Name},
			{"host", d.Host},
			{"psid", d.PSID},
		} {
			v.text(d.Line, object+" "+s.what, s.text)
		}
		if d.Ports == 255 {
			v.Add(d.Line, object, "255 ports", "a device has 254 at most")
		}
		if d.Ports > 0 && len(d.PortGUIDs) > int(d.Ports) {
			v.Add(d.Line, object, fmt.Sprintf("%d port GUIDs for %d ports", len(d.PortGUIDs), d.Ports), "")
		}
		for _, g := range d.PortGUIDs {
			if why := Malformed(g); why != "" {
				v.Add(d.Line, object, fmt.Sprintf("port GUID %v %s", g, why), "read the label or firmware again")
			} else if o, taken := portOwner[g]; taken {
				v.Add(d.Line, object, fmt.Sprintf("port GUID %v is that of device %v, too", g, o), "")
			}
			portOwner[g] = d.GUID
		}
	}
}

func atLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" in line %d", line)
}

func (v *validator) link(i int) {
	l := &v.r.Links[i]
	object := "link " + l.A.String()
	v.end(i, l.A, object)
	if d := v.device[l.A.GUID]; d != nil && d.Kind != KindSwitch && (l.B.IsZero() || v.device[l.B.GUID] == nil || v.device[l.B.GUID].Kind != KindSwitch) {
		v.Add(l.Line, object, fmt.Sprintf("it begins at a device of kind %v and does not end at a switch", d.Kind), "one end of a link is a switch port")
	}
	switch {
	case l.B.IsZero():
		if l.State == Active || l.State == Maintenance {
			v.Add(l.Line, object, fmt.Sprintf("state %v without a peer", l.State), "name the peer, or make it disabled, no_discover or reserved")
		}
	case l.State == Reserved:
		v.Add(l.Line, object, fmt.Sprintf("a reserved port with the peer %v", l.B), "a reserved port must be dark: leave the peer out")
	case l.A == l.B:
		v.Add(l.Line, object, "cabled to itself", "a loopback plug is no link")
	default:
		v.end(i, l.B, object)
	}
	for _, s := range [...]struct{ what, text string }{
		{"reason", l.Reason},
		{"since", l.Since},
		{"cable part", l.Cable.Part},
		{"cable serial", l.Cable.Serial},
	} {
		v.text(l.Line, object+" "+s.what, s.text)
	}
}

func (v *validator) end(i int, e End, object string) {
	line := v.r.Links[i].Line
	d := v.device[e.GUID]
	switch {
	case d == nil:
		v.Add(line, object, fmt.Sprintf("device %v is not listed", e.GUID), "add the device, or correct the GUID")
		return
	case e.Port == 0 || e.Port == ib.NoPort || d.Ports > 0 && uint8(e.Port) > d.Ports:
		v.Add(line, object, fmt.Sprintf("port %d of %v, which has ports 1 to %d", e.Port, d.GUID, portsOr(d.Ports)), "correct the port number; on switches of this model a label is not always the number")
	case d.Stock != InUse:
		v.Add(line, object, fmt.Sprintf("device %v is %v", d.GUID, d.Stock), "only devices in use have links")
	}
	if first, taken := v.owner[e]; taken {
		v.Add(line, object, fmt.Sprintf("port %v is used by the link %v%s, too", e, v.r.Links[first].A, atLine(v.r.Links[first].Line)), "a port has one cable")
		return
	}
	v.owner[e] = i
}

func portsOr(n uint8) uint8 {
	if n == 0 {
		return 254
	}
	return n
}

func (v *validator) policy() {
	p := &v.r.Policy
	if p.MinScore > 1000 {
		v.Add(0, "policy min_score", fmt.Sprintf("%d thousandths", p.MinScore), "want 1 to 1000")
	}
	if p.MaxFlips < 0 {
		v.Add(0, "policy max_flips", fmt.Sprint(p.MaxFlips), "want 0 or more")
	}
	for _, w := range p.Freeze {
		if !w.From.Before(w.To) {
			v.Add(0, "policy freeze", fmt.Sprintf("from %v to %v ends before it begins", w.From, w.To), "")
		}
		v.text(0, "policy freeze why", w.Why)
	}
}

// text rejects text that cannot be shown on one line, or would change how the rest of the line is shown.
func (v *validator) text(line int, what, s string) {
	if len(s) > MaxText {
		v.Add(line, what, fmt.Sprintf("%d bytes, the most is %d", len(s), MaxText), "")
		return
	}
	if !utf8.ValidString(s) {
		v.Add(line, what, fmt.Sprintf("%q is not UTF-8", s), "")
		return
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			v.Add(line, what, fmt.Sprintf("%q holds a character that cannot be printed", s), "")
			return
		}
	}
}
