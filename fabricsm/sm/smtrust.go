package sm

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// Which subnet managers are trusted. Any host may claim to be a subnet manager of the highest rank, may request ours, and
// may send it commands. So an SM is trusted if it shows our SM_Key, at a place where Config.Election.Allowed has it.
//
// The key itself must not become known to hosts. It leaves in two ways: in an answer to a Get, and in a command. A command
// goes to an SM that has shown the key before. An answer shows it when the answer's path ends at an allowed SM. The sender
// is not taken from the request, but from the return path of the directed route. The answer follows that path from switch
// to switch, and it is walked here over the cables that were observed. Answers that are routed by LID never show it, since
// the tables they follow may be those of another manager. The same holds for directed routes that came from a LID: their
// switches did not write the return path, and the answer would go to that LID.
//
// A gap remains until M_Keys guard the answers: an attacker who takes the place of an allowed SM (its GUID, at its switch
// port) receives the key.

// AllowedSM names another SM that this one works with.
type AllowedSM struct {
	GUID  ib.GUID  // port GUID
	Place ib.Place // switch port it must be cabled to; zero: wherever the GUID is seen
}

// ParseAllowedSM reads "GUID" or "GUID@SWITCH/PORT".
func ParseAllowedSM(s string) (a AllowedSM, err error) {
	guid, place, pinned := strings.Cut(s, "@")
	if a.GUID, err = ib.ParseGUID(guid); err != nil || !a.GUID.Valid() {
		return AllowedSM{}, fmt.Errorf("allowed subnet manager %q: want PORT-GUID or PORT-GUID@SWITCH-GUID/PORT", s)
	}
	if pinned {
		if a.Place, err = ib.ParsePlace(place); err != nil {
			return AllowedSM{}, fmt.Errorf("allowed subnet manager %q: %w", s, err)
		}
	}
	return a, nil
}

// UnmarshalText reads what ParseAllowedSM does.
func (a *AllowedSM) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAllowedSM(string(b))
	return err
}

// MarshalText writes what UnmarshalText reads.
func (a AllowedSM) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String is what ParseAllowedSM reads.
func (a AllowedSM) String() string {
	if a.Place.IsZero() {
		return a.GUID.String()
	}
	return a.GUID.String() + "@" + a.Place.String()
}

// listed reports whether an end port is one of Config.Election.Allowed, at its place.
func (c *Core) listed(p topo.PortID) bool {
	guid, place := c.topo.GUIDOf(p), c.topo.PlaceOf(p)
	for _, a := range c.cfg.Election.Allowed {
		if a.GUID == guid && (a.Place.IsZero() || a.Place == place) {
			return true
		}
	}
	return false
}

// mayTrust reports whether an SM at a port would be trusted if it showed the SM_Key. Any host can show an empty one, so
// without a key no SM is trusted.
func (c *Core) mayTrust(p topo.PortID) bool {
	return !c.cfg.SMKey.IsZero() && (len(c.cfg.Election.Allowed) == 0 || c.listed(p))
}

func (c *Core) trusts(p topo.PortID, si *mad.SMInfo) bool {
	return c.mayTrust(p) && c.cfg.Controls.Managers.AcceptsKey(c.cfg.SMKey, si.SMKey)
}

// shows reports whether the answer to a request from an end port may hold the SM_Key. Where ports have M_Keys, a protected
// PortInfo requires more: the request must show ours.
func (c *Core) shows(to topo.PortID) bool {
	return !c.cfg.SMKey.IsZero() && to != topo.None && c.cfg.Controls.Managers.ShowsKey(c.listed(to))
}

// senderOf returns the end port at which the answer to a directed-route request will arrive, None when the path is not
// known or the request was routed by LID.
func (c *Core) senderOf(in *Received) topo.PortID {
	m := &in.MAD
	if in.LID != ib.PermissiveLID {
		return topo.None
	}
	if !m.IsDR() || m.HopCount() > mad.MaxHops || m.DrSLID() != ib.PermissiveLID || m.DrDLID() != ib.PermissiveLID {
		return topo.None
	}
	if c.root == topo.None || !c.nodes[c.root].alive {
		return topo.None
	}
	back := m.ReturnRoute()
	at, end := c.root, topo.PortID(topo.None)
	for i := back.Len() - 1; i >= 0; i-- {
		p := c.topo.PortOf(at, back.At(i))
		if p == topo.None || !c.tree.Probes(p) {
			return topo.None
		}
		if end = c.topo.Peer(p); end == topo.None {
			return topo.None
		}
		at = c.ports[end].node
	}
	if end != topo.None && c.topo.Node(at).Type == ib.NodeSwitch {
		end = c.topo.Node(at).FirstPort
	}
	if end == topo.None || end == c.own() {
		return topo.None
	}
	if p, ok := c.byPort[c.topo.GUIDOf(end)]; !ok || p != end {
		return topo.None
	}
	return end
}
