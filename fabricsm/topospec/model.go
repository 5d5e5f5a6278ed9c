package topospec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
)

// Limits of a revision. They are above the largest fabric that LIDs can address
// with several adapters to a host.
const (
	MaxDevices = 200_000
	MaxLinks   = 1_000_000
	MaxText    = 128 // bytes of a name, a rack, a reason
)

// End is one end of a link: a port of a device. The zero End is "none".
type End struct {
	GUID ib.GUID // node GUID
	Port ib.PortNum
}

// ParseEnd reads "0x...guid/port"; all 16 digits of the GUID are demanded.
func ParseEnd(s string) (End, error) {
	guid, port, ok := strings.Cut(s, "/")
	if !ok {
		return End{}, fmt.Errorf("link end %.60q: want GUID/PORT", s)
	}
	g, err := ParseGUID(guid)
	if err != nil {
		return End{}, err
	}
	n, err := ib.ParsePortNum(port)
	if err != nil || n == 0 || port[0] == '0' {
		return End{}, fmt.Errorf("link end %.60q: want a port from 1 to 254 in decimal", s)
	}
	return End{g, n}, nil
}

// String returns "0x...guid/port".
func (e End) String() string { return fmt.Sprintf("%v/%d", e.GUID, e.Port) }

// IsZero reports whether it is the zero value, which means none.
func (e End) IsZero() bool { return e == End{} }

// Place returns the end as a switch port.
func (e End) Place() ib.Place { return ib.Place{Switch: e.GUID, Port: e.Port} }

// EndAt returns a switch port as a link end.
func EndAt(p ib.Place) End { return End{p.Switch, p.Port} }

// Compare orders ends by GUID and port.
func (e End) Compare(o End) int {
	if c := cmp.Compare(e.GUID, o.GUID); c != 0 {
		return c
	}
	return cmp.Compare(e.Port, o.Port)
}

// Revision is one version of the declared fabric. It is a value: after its publication nothing changes it.
type Revision struct {
	Number  uint64 // grows with every revision; 0: a draft
	Parent  Digest // of the revision it was made from, zero for the first
	Fabric  string
	Devices []Device
	Links   []Link // a trunk is one Link, not two
	Policy  Policy
}

// Device is a switch, an adapter (one node GUID), a router or an aggregation
// node, and where it stands.
type Device struct {
	GUID        ib.GUID
	Kind        Kind
	Model       string // product, a name of package product
	Serial      string
	Site, Room  string
	Rack        string
	U           uint8  // lowest rack unit, 0: not said
	Slot        string // in the host or chassis
	Name        string // unique in the revision; the name that operators use
	Host        string // machine that an adapter is in
	Rail        uint8  // index of the adapter in its host, from 1; 0: none
	PSID        string // firmware parameter set of an adapter
	Role        Role
	Stock       Stock
	Ports       uint8     // external ports, 0: not said
	SystemImage ib.GUID   // 0: not said
	PortGUIDs   []ib.GUID // of ports 1, 2, ... of an adapter; empty: not said
	Line        int       // where it stood in the file it was read from
}

// Link is an intended cable, or a port that has none.
type Link struct {
	A      End // a switch port wherever one of the ends is a switch
	B      End // zero: the other end is not known (boundary) or must be empty
	State  LinkState
	Class  Class
	Cable  Cable
	Since  string // date of the change that brought it, RFC 3339
	Reason string
	Line   int // where it stood in the file it was read from
}

// Cable is what inventory knows of a cable.
type Cable struct {
	Part, Serial string
	Length       uint16 // in decimetres, 0: not said
}

// Policy says how a revision is compared with the fabric, and how it may be
// replaced.
type Policy struct {
	Mode     Mode
	Fields   Fields
	Unknown  UnknownLink
	MinScore Permille // of verified links for enforcement to start; 0: DefaultMinScore
	MaxFlips int      // links that may change in one activation; 0: DefaultMaxFlips of 1000 links, at least 8
	Two      []Touch  // changes that two persons must approve
	Freeze   []Window // times in which nothing is activated
	Stocked  bool     // a spare of the right model that appears under maintenance needs no approval
}

// Fields says how much each field of the comparison counts. By default GUID,
// port and type are enforced, the others are off.
type Fields struct {
	GUID, Port, Type, PortGUID, SystemImage, NumPorts FieldMode
}

// Window is a span of time, with its reason.
type Window struct {
	From, To time.Time // To is outside
	Why      string
}

// Permille is a share in thousandths.
type Permille uint16

// Guards where a policy names none.
const (
	DefaultMinScore Permille = 950
	DefaultMaxFlips Permille = 50
)

// Share returns a part of a whole in thousandths, rounded down. It returns 0 if the whole is 0, so that an empty
// specification never scores.
func Share(part, whole int) Permille {
	if whole <= 0 {
		return 0
	}
	return Permille(part * 1000 / whole)
}

func (p Permille) String() string { return fmt.Sprintf("%d.%d%%", p/10, p%10) }

// Score returns the score that enforcement needs.
func (p *Policy) Score() Permille {
	if p.MinScore == 0 {
		return DefaultMinScore
	}
	return p.MinScore
}

// slack is how many links may be wrong in a fabric so small that one or two are more
// than DefaultMinScore leaves.
const slack = 2

// Enough reports whether the verified links, out of those expected, are enough for enforcement. Without a score in the
// policy, two may always be missing: one wrong cable must not keep a small fabric from being protected. None out of none is
// not enough.
func (p *Policy) Enough(verified, expected int) bool {
	if verified <= 0 {
		return false
	}
	return Share(verified, expected) >= p.Score() || p.MinScore == 0 && expected-verified <= slack
}

// Flips returns how many of a number of links may change in one activation.
func (p *Policy) Flips(links int) int {
	if p.MaxFlips > 0 {
		return p.MaxFlips
	}
	return max(8, links*int(DefaultMaxFlips)/1000)
}

// WithDefaults returns the fields with their defaults filled in.
func (f Fields) WithDefaults() Fields {
	for _, m := range []*FieldMode{&f.GUID, &f.Port, &f.Type} {
		if *m == FieldDefault {
			*m = FieldEnforce
		}
	}
	for _, m := range []*FieldMode{&f.PortGUID, &f.SystemImage, &f.NumPorts} {
		if *m == FieldDefault {
			*m = FieldOff
		}
	}
	return f
}

// Normalize brings a revision into its one order: devices by GUID, links by
// their ends, the lower end first unless the other one alone is a switch.
func (r *Revision) Normalize() {
	slices.SortStableFunc(r.Devices, func(a, b Device) int { return cmp.Compare(a.GUID, b.GUID) })
	kind := make(map[ib.GUID]Kind, len(r.Devices))
	for i := range r.Devices {
		kind[r.Devices[i].GUID] = r.Devices[i].Kind
	}
	for i := range r.Links {
		l := &r.Links[i]
		a, b := kind[l.A.GUID] == KindSwitch, kind[l.B.GUID] == KindSwitch
		if !l.B.IsZero() && (!a && b || a == b && l.B.Compare(l.A) < 0) {
			l.A, l.B = l.B, l.A
		}
	}
	slices.SortStableFunc(r.Links, func(a, b Link) int {
		if c := a.A.Compare(b.A); c != 0 {
			return c
		}
		return a.B.Compare(b.B)
	})
}

// Clone returns a copy that shares nothing mutable.
func (r *Revision) Clone() *Revision {
	c := *r
	c.Devices = slices.Clone(r.Devices)
	for i := range c.Devices {
		c.Devices[i].PortGUIDs = slices.Clone(c.Devices[i].PortGUIDs)
	}
	c.Links = slices.Clone(r.Links)
	c.Policy.Two = slices.Clone(r.Policy.Two)
	c.Policy.Freeze = slices.Clone(r.Policy.Freeze)
	return &c
}
