package umad

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// maxDevice is the longest name of an InfiniBand device that Linux allows.
const maxDevice = 63

// ParseSpec reads a port specification: "umad:DEVICE" or "umad:DEVICE:PORT", where DEVICE is a name as in
// /sys/class/infiniband and PORT is 1 to 254. Dial chooses missing parts.
func ParseSpec(s string) (Options, error) {
	rest, ok := strings.CutPrefix(s, "umad:")
	if !ok {
		return Options{}, fmt.Errorf("%q: want umad:DEVICE[:PORT]", s)
	}
	device, number, hasPort := strings.Cut(rest, ":")
	o := Options{Device: device}
	if device == "" && hasPort {
		return Options{}, fmt.Errorf("%q: has a port but no device: want umad:DEVICE[:PORT]", s)
	}
	if device != "" && !validDevice(device) {
		return Options{}, fmt.Errorf("%q: %q is not the name of a device as in /sys/class/infiniband", s, device)
	}
	if !hasPort {
		return o, nil
	}
	port, err := ib.ParsePortNum(number)
	if err != nil {
		return Options{}, fmt.Errorf("%q: %w", s, err)
	}
	if port == 0 {
		return Options{}, fmt.Errorf("%q: ports count from 1; leave the port out to have one chosen", s)
	}
	o.Port = port
	return o, nil
}

// validDevice reports whether a name can be a directory below /sys/class/infiniband.
func validDevice(s string) bool {
	if s == "" || len(s) > maxDevice || s[0] == '.' {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
