package devicemodel_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		model, label string
		port         ib.PortNum
	}{
		{"MQM9700", "1/1", 1},
		{"MQM9700-NS2F", "32/2", 64},
		{"QM9790", "2/1", 3},
		{"MQM8700", "40", 40},
		{"MQM9700", "65", 65},
	} {
		m, ok := devicemodel.Find(tt.model)
		if !ok || m.Label(tt.port) != tt.label || devicemodel.Label(tt.model, tt.port) != tt.label {
			t.Errorf("%s port %d: label %q, want %q", tt.model, tt.port, m.Label(tt.port), tt.label)
		}
		if p, err := m.PortOf(tt.label); (err == nil) != (uint8(tt.port) <= m.Ports) || err == nil && p != tt.port {
			t.Errorf("%s label %s: port %d, %v", tt.model, tt.label, p, err)
		}
	}
	if _, ok := devicemodel.Find("X1"); ok || devicemodel.Label("X1", 1) != "" {
		t.Error("an unknown model is known")
	}
}

func TestChassis(t *testing.T) {
	c := devicemodel.Chassis{Leaves: 4, Spines: 2, External: 18, Parallel: 9}
	chips := []ib.GUID{0x10, 0x11, 0x12, 0x13, 0x20, 0x21}
	links, err := c.Internal(chips)
	if err != nil || len(links) != 72 {
		t.Fatalf("%d links, %v", len(links), err)
	}
	r := topospec.Revision{Links: links}
	for i, g := range chips {
		r.Devices = append(r.Devices, topospec.Device{GUID: g, Kind: topospec.KindSwitch, Ports: 36, Line: i})
	}
	if err := r.Validate("chassis"); err != nil {
		t.Error(err)
	}
	if _, err := c.Internal(chips[1:]); err == nil {
		t.Error("a chip too few is taken")
	}
}
