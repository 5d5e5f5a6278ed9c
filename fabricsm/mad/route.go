package mad

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// MaxHops is the longest directed route: the path arrays of a directed-route
// SMP have 64 bytes and byte 0 is not used (IBTA volume 1, 14.2.2).
const MaxHops = 63

const pathSize = 64

// Route is a directed route: the egress port of each hop, beginning at the
// node that sends. It is a comparable value. The zero Route has no hops and
// addresses the sending node itself.
type Route struct {
	hops uint8
	path [pathSize]byte // [1..hops] as on the wire, zero elsewhere
}

// MakeRoute builds a route of the given egress ports. More than MaxHops are a
// programming error and panic; use Append for routes that grow by discovery.
func MakeRoute(ports ...ib.PortNum) (r Route) {
	for _, p := range ports {
		var ok bool
		if r, ok = r.Append(p); !ok {
			panic(fmt.Sprintf("mad: route of %d hops", len(ports)))
		}
	}
	return r
}

// ParseRoute reads the notation of String: "0" or "0,1,19".
func ParseRoute(s string) (r Route, err error) {
	first, rest, more := strings.Cut(s, ",")
	if first != "0" {
		return Route{}, fmt.Errorf("directed route %q: want 0 and the egress ports, for example 0,1,19", s)
	}
	for more {
		first, rest, more = strings.Cut(rest, ",")
		p, err := ib.ParsePortNum(first)
		if err != nil {
			return Route{}, fmt.Errorf("directed route %q: %w", s, err)
		}
		var ok bool
		if r, ok = r.Append(p); !ok {
			return Route{}, fmt.Errorf("directed route %q: more than %d hops", s, MaxHops)
		}
	}
	return r, nil
}

// Append returns the route one hop longer, leaving the last node through port p. At MaxHops it returns r unchanged and
// false.
func (r Route) Append(p ib.PortNum) (Route, bool) {
	if r.hops >= MaxHops {
		return r, false
	}
	r.hops++
	r.path[r.hops] = byte(p)
	return r, true
}

// Len is the number of hops, 0 to MaxHops.
func (r Route) Len() int { return int(r.hops) }

// At is the egress port of hop i, from 0 to Len()-1.
func (r Route) At(i int) ib.PortNum {
	if i < 0 || i >= r.Len() {
		panic(fmt.Sprintf("mad: hop %d of a route of %d", i, r.Len()))
	}
	return ib.PortNum(r.path[i+1])
}

// String returns the notation of infiniband-diags: "0,1,19", where the leading 0 stands for the sender.
func (r Route) String() string {
	var b strings.Builder
	b.WriteByte('0')
	for i := range r.Len() {
		fmt.Fprintf(&b, ",%d", r.At(i))
	}
	return b.String()
}

// MarshalText implements encoding.TextMarshaler.
func (r Route) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Route) UnmarshalText(b []byte) (err error) { *r, err = ParseRoute(string(b)); return err }

// pathRoute reads a path array of a MAD. A hop count above MaxHops is cut to
// it: such a MAD is to be discarded, see HopCount.
func pathRoute(hops uint8, path []byte) (r Route) {
	r.hops = min(hops, MaxHops)
	copy(r.path[1:r.hops+1], path[1:])
	return r
}
