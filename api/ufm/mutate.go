package ufm

import (
	"fmt"
	"slices"

	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// done is the body of the answer to a change.
type done struct{}

// names of the clusters that are created here. The first is not shown without members.
func boundName(k ib.PKey) string { return fmt.Sprintf("%s0x%04x", boundPrefix, uint16(k)) }
func addedName(k ib.PKey) string { return fmt.Sprintf("partition-0x%04x", uint16(k)) }

// into returns the cluster of a P_Key, which it creates if there is none. One that is not the credential's is refused as if there
// were none.
func (s *surface) into(c *call, k ib.PKey, hosts []*v1.Host) (*v1.Cluster, error) {
	to, err := s.find(c.ctx, k)
	if err != nil || to != nil && sees(c.ctx, k) {
		return to, err
	}
	// None of them could be assigned: no partition is left behind without members.
	for _, h := range hosts {
		if h.Cluster != "" && sees(c.ctx, k) {
			return nil, refusal.New(refusal.Conflict, "host_assigned", "release the host first", "host %s is assigned to a cluster already; nothing was done", h.ID)
		}
	}
	return s.create(c, k, boundName(k))
}

// add has the hosts of GUIDs be members.
func (s *surface) add(c *call) (any, error) {
	k, hosts, err := s.named(c)
	if err != nil {
		return nil, err
	}
	return s.join(c, k, hosts)
}

// named returns the P_Key of an order, and the hosts of its GUIDs.
func (s *surface) named(c *call) (ib.PKey, []*v1.Host, error) {
	o, k, err := s.read(c)
	if err != nil {
		return 0, nil, err
	}
	guids, err := o.guids()
	if err != nil {
		return 0, nil, err
	}
	hosts, err := s.known(c.ctx, guids)
	return k, hosts, err
}

// guids returns the GUIDs of an order, which must be there.
func (o *order) guids() ([]ib.GUID, error) {
	if o.GUIDs == nil {
		return nil, invalid("guids is missing")
	}
	return parseGUIDs(*o.GUIDs)
}

func (s *surface) join(c *call, k ib.PKey, hosts []*v1.Host) (any, error) {
	to, err := s.into(c, k, hosts)
	if err != nil {
		return nil, err
	}
	return done{}, s.assign(c, to, hosts)
}

// set has exactly the hosts of GUIDs be members. Those that leave do so first.
func (s *surface) set(c *call) (any, error) {
	k, hosts, err := s.named(c)
	if err != nil {
		return nil, err
	}
	to, err := s.into(c, k, hosts)
	if err != nil {
		return nil, err
	}
	var leave []*v1.Host
	err = s.members(c.ctx, to.Name, func(h *v1.Host) {
		if !slices.ContainsFunc(hosts, func(stays *v1.Host) bool { return stays.ID == h.ID }) {
			leave = append(leave, h)
		}
	})
	if err == nil {
		err = s.release(c, to, leave)
	}
	if err == nil {
		err = s.assign(c, to, hosts)
	}
	return done{}, err
}

// addEmpty creates a partition without members.
func (s *surface) addEmpty(c *call) (any, error) {
	o, k, err := s.read(c)
	if err != nil {
		return nil, err
	}
	is, err := s.find(c.ctx, k)
	if err != nil {
		return nil, err
	}
	if is != nil && sees(c.ctx, k) {
		return nil, refusal.New(refusal.Conflict, codeExists, "use it, or delete it first", "P_Key %s is that of partition %s", showPKey(k), is.Name)
	}
	name := addedName(k)
	if o.Name != "" {
		name = o.Name
	}
	if _, err := s.create(c, k, name); err != nil {
		return nil, err
	}
	return done{}, nil
}

// setQoS accepts what every partition has.
func (s *surface) setQoS(c *call) (any, error) {
	_, k, err := s.read(c)
	if err != nil {
		return nil, err
	}
	_, err = s.own(c, k)
	return done{}, err
}

// own returns the cluster of a P_Key of the credential.
func (s *surface) own(c *call, k ib.PKey) (*v1.Cluster, error) {
	if k == 0 || k == ib.DefaultPKeyLimited {
		return nil, reserved(k)
	}
	if err := refused(c.ctx, k); err != nil {
		return nil, err
	}
	is, err := s.find(c.ctx, k)
	if err == nil && is == nil {
		err = refusal.New(refusal.NotFound, codeUnknown, "list the partitions to see their P_Keys", "no partition has P_Key %s", showPKey(k))
	}
	return is, err
}

// addHosts has hosts be members by their names.
func (s *surface) addHosts(c *call) (any, error) {
	o, k, err := s.read(c)
	if err != nil {
		return nil, err
	}
	hosts, unknown, err := s.byName(c.ctx, o.HostNames)
	switch {
	case err != nil:
		return nil, err
	case len(unknown) > 0:
		return nil, refusal.New(refusal.Invalid, codeHost, "use the ids of hosts as the inventory has them", "these hosts are not in the inventory: %s; nothing was done", refusal.Some(unknown))
	case len(hosts) == 0:
		return nil, invalid("hosts_names names no host")
	}
	return s.join(c, k, hosts)
}

// remove has the hosts of GUIDs be members no longer. A host leaves with all its ports. GUIDs and P_Keys that there are not are
// removed already.
func (s *surface) remove(c *call) (any, error) {
	o, k, err := s.read(c)
	if err != nil {
		return nil, err
	}
	guids, err := o.guids()
	if err != nil {
		return nil, err
	}
	from, err := s.own(c, k)
	if refusal.IsKind(err, refusal.NotFound) {
		return done{}, nil
	}
	if err != nil {
		return nil, err
	}
	return s.leave(c, from, guids)
}

func (s *surface) leave(c *call, from *v1.Cluster, guids []ib.GUID) (any, error) {
	var leave []*v1.Host
	err := s.members(c.ctx, from.Name, func(h *v1.Host) {
		if hasAny(h, guids) {
			leave = append(leave, h)
		}
	})
	if err == nil {
		err = s.release(c, from, leave)
	}
	return done{}, err
}

func hasAny(h *v1.Host, guids []ib.GUID) bool {
	for _, a := range h.HCAs {
		for _, p := range a.Ports {
			if slices.Contains(guids, p.GUID) {
				return true
			}
		}
	}
	return false
}

// pathKey returns the cluster of the P_Key in the path.
func (s *surface) pathKey(c *call) (*v1.Cluster, error) {
	k, err := c.pkey()
	if err != nil {
		return nil, err
	}
	return s.own(c, k)
}

// removeByPath is remove with P_Key and GUIDs in the path.
func (s *surface) removeByPath(c *call) (any, error) {
	from, err := s.pathKey(c)
	if err != nil {
		return nil, err
	}
	list, err := c.param("guids")
	if err != nil {
		return nil, err
	}
	guids, err := parseGUIDs(split(list))
	if err != nil {
		return nil, err
	}
	return s.leave(c, from, guids)
}

// removeHosts has hosts be members no longer, by their names.
func (s *surface) removeHosts(c *call) (any, error) {
	from, err := s.pathKey(c)
	if err != nil {
		return nil, err
	}
	list, err := c.param("hosts")
	if err != nil {
		return nil, err
	}
	hosts, _, err := s.byName(c.ctx, list)
	if err != nil {
		return nil, err
	}
	return done{}, s.release(c, from, hosts)
}

// drop removes all members, and the partition.
func (s *surface) drop(c *call) (any, error) {
	from, err := s.pathKey(c)
	if err != nil {
		return nil, err
	}
	var leave []*v1.Host
	err = s.members(c.ctx, from.Name, func(h *v1.Host) { leave = append(leave, h) })
	if err == nil {
		err = s.release(c, from, leave)
	}
	if err == nil {
		err = s.o.Tenancy.DeleteCluster(ifmatch.With(c.ctx, []string{from.Version}), c.owner, from.Name)
	}
	return done{}, err
}
