package ndt

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/devicemodel"
)

// place is the meaning of a port in a plan: a device of the manifest, and which of its ports.
type place struct {
	name string // in the manifest
	host string // machine that an adapter is in, "": not said
	port string // number or label
	kind topospec.Kind
}

// locate reads how a port is written.
func locate(p Port) (place, error) {
	if label, ok := strings.CutPrefix(p.Label, "Port "); ok {
		at := place{name: p.Device, port: label, host: hostOf(p.Device)}
		if strings.Contains(label, "/") || inIB(p.Device) {
			at.kind = topospec.KindSwitch
		} else if at.host != "" {
			at.kind = topospec.KindHCA
		}
		return at, nil
	}
	if rest, ok := strings.CutPrefix(p.Label, "Blade "); ok {
		return blade(p.Device, rest)
	}
	if rest, ok := strings.CutPrefix(p.Label, p.Device+" "); ok && rest != "" {
		return place{name: p.Label, host: p.Device, port: "1", kind: topospec.KindHCA}, nil
	}
	if isAdapter(p.Label) {
		return place{name: p.Device + " " + p.Label, host: p.Device, port: "1", kind: topospec.KindHCA}, nil
	}
	return place{}, fmt.Errorf("port %q: want Port N, Port CAGE/PORT, Blade N_Port CHIP/PORT, or the name of an adapter of the host, as mlx5_0", p.Label)
}

// blade reads "16_Port 2/20": leaf, chip and port of a director switch.
func blade(device, s string) (place, error) {
	leaf, rest, ok := strings.Cut(s, "_Port ")
	chip, port, two := strings.Cut(rest, "/")
	l, err1 := strconv.ParseUint(leaf, 10, 8)
	u, err2 := strconv.ParseUint(chip, 10, 8)
	if !ok || !two || err1 != nil || err2 != nil || l == 0 || u == 0 {
		return place{}, fmt.Errorf("port %q: want Blade LEAF_Port CHIP/PORT", "Blade "+s)
	}
	return place{name: fmt.Sprintf("%s/L%d/U%d", device, l, u), port: port, kind: topospec.KindSwitch}, nil
}

// inIB reports whether a device is a switch: by the convention of these plans its name ends in IB and a number.
func inIB(device string) bool {
	rest := strings.TrimRight(device, "0123456789")
	return rest != device && strings.HasSuffix(rest, "IB")
}

// hostOf returns the machine of an adapter that is written as a device, as in "gpu-1 mlx5_0"; "" for other devices.
func hostOf(device string) string {
	host, adapter, ok := strings.Cut(device, " ")
	if ok && isAdapter(adapter) {
		return host
	}
	return ""
}

// isAdapter reports whether a string is a name that drivers use for adapters.
func isAdapter(s string) bool {
	for _, prefix := range [...]string{"mlx", "HCA-", "ibp", "ib"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok && rest != "" && rest[len(rest)-1] >= '0' && rest[len(rest)-1] <= '9' && !strings.ContainsAny(s, " /") {
			return true
		}
	}
	return false
}

// number returns the port number for the text beside a port. A number alone is that of the port; a label needs a known
// model.
func number(model, label string) (ib.PortNum, error) {
	if !strings.Contains(label, "/") {
		n, err := ib.ParsePortNum(label)
		if err != nil || n == 0 || n == ib.NoPort || label[0] == '0' || label[0] == '+' {
			return 0, fmt.Errorf("port %q: want a number from 1 to 254 in decimal", label)
		}
		return n, nil
	}
	m, ok := devicemodel.Find(model)
	if !ok {
		return 0, fmt.Errorf("port label %q: the model %q is not known; write in the manifest one of %s, or write the port by its number", label, model, strings.Join(devicemodel.Names(), ", "))
	}
	if strings.Count(label, "/") == 2 { // of the only chip
		if rest, ok := strings.CutPrefix(label, "1/"); ok {
			label = rest
		}
	}
	return m.PortOf(label)
}
