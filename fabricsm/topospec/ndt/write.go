package ndt

import (
	"encoding/csv"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// Words of the column Domain. inScope and disconnected are those of the vendor's own
// generator.
const (
	inScope      = "In-Scope"
	disconnected = "Disconnected"
)

// Write returns a specification as a plan, in the brief form with State and Domain. Names distinguish devices, so each
// linked one must have a name. Links inside switches are left out, as in plans.
func Write(s *topospec.Spec) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	line := func(fields ...string) { _ = w.Write(fields) } // a Builder takes everything
	line("StartDevice", "StartPort", "EndDevice", "EndPort", "State", "Domain")
	problems := topospec.Problems{}
	for i := range s.Revision().Links {
		l := &s.Revision().Links[i]
		if isInside(s, l) {
			continue
		}
		a, err := written(s, l.A)
		if err != nil {
			problems.Add(0, l.A.String(), err.Error(), "write a name: a plan knows devices by nothing else")
			continue
		}
		if l.B.IsZero() {
			line(a.Device, a.Label, "", "", stateWord(l.State), disconnected)
			continue
		}
		z, err := written(s, l.B)
		if err != nil {
			problems.Add(0, l.B.String(), err.Error(), "write a name: a plan knows devices by nothing else")
			continue
		}
		line(a.Device, a.Label, z.Device, z.Label, stateWord(l.State), inScope)
	}
	w.Flush()
	return b.String(), problems.Err()
}

// isInside reports whether a link leads to a part inside a switch.
func isInside(s *topospec.Spec, l *topospec.Link) bool {
	for _, e := range [2]topospec.End{l.A, l.B} {
		if id := s.DeviceByGUID(e.GUID); id != topospec.None && s.Device(id).Kind == topospec.KindAN {
			return true
		}
	}
	return false
}

// written returns a link end in the notation of a plan.
func written(s *topospec.Spec, e topospec.End) (Port, error) {
	d := s.Device(s.DeviceByGUID(e.GUID))
	if d.Name == "" {
		return Port{}, fmt.Errorf("%v %v has no name", d.Kind, d.GUID)
	}
	if blade, ok := bladeOf(d, e.Port); ok {
		return blade, nil
	}
	return Port{Device: d.Name, Label: "Port " + labelOf(d, e.Port)}, nil
}

// bladeOf returns a port of a chip of a director, whose name is DEVICE/L16/U2.
func bladeOf(d *topospec.Device, port ib.PortNum) (Port, bool) {
	at := strings.LastIndex(d.Name, "/L")
	if d.Kind != topospec.KindSwitch || at <= 0 {
		return Port{}, false
	}
	var leaf, chip uint8
	if _, err := fmt.Sscanf(d.Name[at:], "/L%d/U%d", &leaf, &chip); err != nil || fmt.Sprintf("/L%d/U%d", leaf, chip) != d.Name[at:] {
		return Port{}, false
	}
	return Port{Device: d.Name[:at], Label: fmt.Sprintf("Blade %d_Port %d/%d", leaf, chip, port)}, true
}

// labelOf returns the label of a port, with its chip in front where the model has cages; otherwise its number.
func labelOf(d *topospec.Device, port ib.PortNum) string {
	if label := devicemodel.Label(d.Model, port); d.Kind == topospec.KindSwitch && strings.Contains(label, "/") {
		return "1/" + label
	}
	return fmt.Sprint(port)
}

func stateWord(s topospec.LinkState) string {
	switch s {
	case topospec.Disabled, topospec.Reserved:
		return "Disabled"
	case topospec.NoDiscover:
		return "No-discover"
	default:
		return "Active"
	}
}
