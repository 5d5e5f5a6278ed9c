package posture

import (
	"fmt"
	"slices"
	"time"

	"portcullis/api/profile"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/settling"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
)

// minProtection is the level of protection from which on an M_Key hides itself and refuses reading.
const minProtection = 2

// count counts ports by what was read of them.
type count struct{ good, bad, unread int }

func (c *count) add(read, good bool) {
	switch {
	case !read:
		c.unread++
	case good:
		c.good++
	default:
		c.bad++
	}
}

// seen returns the count. One bad port is enough to know that not all are good, and one that was not read is enough not to know
// that they are.
func (c *count) seen(at time.Time, source, what string) profile.Seen[profile.Count] {
	out := profile.Seen[profile.Count]{Value: profile.Count{Of: c.good + c.bad + c.unread, Good: c.good}, Source: source, At: at}
	if c.bad == 0 {
		out.Missing = c.missing(what)
	}
	return out
}

func (c *count) missing(what string) string {
	if c.unread == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %d of %d ports are not known to be read", what, c.unread, c.good+c.bad+c.unread)
}

// fabric collects what the Subnet Manager read.
func fabric(f *profile.Facts, v *sm.View, core *sm.Config) {
	switch {
	case v.State != ib.SMMaster:
		unseen(f, fmt.Sprintf("the Subnet Manager of this instance is not master: its state is %v", v.State))
		return
	case v.Progress.Phase == settling.Discovery:
		unseen(f, "the Subnet Manager has not read all of the fabric yet")
		return
	}
	const tables, infos = "P_Key tables as hosts answered the Subnet Manager, when it read or wrote them", "PortInfo that devices showed the Subnet Manager"
	own := v.Fabric.PortByGUID(v.GUID)
	var limited, in, out count
	for p, port := range v.Fabric.Ports() {
		if v.Fabric.NodeOf(p).Type == ib.NodeSwitch || port.GUID == 0 || p == own || slices.Contains(v.Managers, p) {
			continue
		}
		leaf := v.Fabric.LinkUp(p)
		if leaf == topo.None {
			continue
		}
		full := slices.Contains(v.PKeyTable(p), ib.DefaultPKeyFull)
		limited.add(full || v.KeyTable(p).IsKnown(), !full)
		if v.Fabric.NodeOf(leaf).Type != ib.NodeSwitch {
			in.bad++ // no switch is between
			out.bad++
			continue
		}
		info, read := portInfo(v, leaf)
		in.add(read, info.PartitionEnforcementInbound)
		out.add(read, info.PartitionEnforcementOutbound)
	}
	f.LimitedDefault = limited.seen(v.Time, tables, "P_Key tables")
	f.EnforcedIn, f.EnforcedOut = in.seen(v.Time, infos, "settings"), out.seen(v.Time, infos, "settings")
	f.TopologyEnforce = profile.Seen[bool]{
		Value: v.Topology != nil && v.Topology.Mode == topospec.Enforce, At: v.Time, Source: "the declared topology that the Subnet Manager has in force",
	}
	f.MKeys = deviceKeys(v, core)
}

// deviceKeys returns how the M_Keys of end ports stand.
func deviceKeys(v *sm.View, core *sm.Config) profile.Seen[profile.DeviceKeys] {
	out := profile.Seen[profile.DeviceKeys]{At: v.Time, Source: "key records, and PortInfo that devices showed the Subnet Manager"}
	k := v.MKeys
	if k == nil || k.Releasing || k.Released {
		return out // known: no port has a key of its own
	}
	out.Value = profile.DeviceKeys{PerPort: true, Protection: core.MKey.Protection, Rotation: k.Period}
	var ports count
	for _, p := range v.Fabric.EndPorts() {
		node := v.Fabric.NodeOf(p)
		if node.Type != ib.NodeSwitch && v.Fabric.LinkUp(p) == topo.None {
			continue
		}
		info, read := portInfo(v, p)
		state := v.MKey(p)
		held := state != nil && state.Origin != "" && !state.Exposed && (state.Standing == mkeys.KeyHeld || state.Standing == mkeys.KeyChanging)
		ports.add(read || !held, held && info.MKeyProtectBits >= minProtection)
	}
	all := ports.seen(v.Time, out.Source, "settings")
	out.Value.Ports, out.Missing = all.Value, all.Missing
	return out
}

// portInfo returns what a port showed last. It reports false if that was not read.
func portInfo(v *sm.View, p topo.PortID) (info mad.PortInfo, read bool) {
	raw := v.PortInfo(p)
	read = raw != nil && mad.Decode(raw[:], &info) == nil
	return info, read
}

// unseen has the facts of the fabric unknown.
func unseen(f *profile.Facts, why string) {
	f.LimitedDefault.Missing, f.EnforcedIn.Missing, f.EnforcedOut.Missing = why, why, why
	f.TopologyEnforce.Missing, f.MKeys.Missing = why, why
}
