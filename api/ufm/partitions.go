package ufm

import (
	"context"
	"slices"
	"strings"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// The default partition, as clients know it.
const (
	defaultName = "management"
	// boundPrefix begins the names of clusters that were created by the first member, as UFM creates partitions. Without
	// members they are not shown: UFM deletes a partition with its last member.
	boundPrefix = "pkey-"
)

type memberView struct {
	GUID       string `json:"guid"`
	Index0     bool   `json:"index0"`
	Membership string `json:"membership"`
}

type qosView struct {
	MTU   int     `json:"mtu_limit"`
	Rate  float64 `json:"rate_limit"`
	Level int     `json:"service_level"`
}

type partitionView struct {
	Partition  string        `json:"partition"`
	IPoIB      bool          `json:"ip_over_ib"`
	Membership string        `json:"membership,omitempty"` // of the default partition
	Index0     *bool         `json:"index0,omitempty"`     // the same
	GUIDs      *[]memberView `json:"guids,omitempty"`
	QoS        *qosView      `json:"qos_conf,omitempty"`
}

// pages calls each with the items of a list, page by page.
func pages[T any](list func(v1.PageQuery) (*v1.List[T], error), each func(*T)) error {
	q := v1.PageQuery{Limit: v1.MaxPage}
	for {
		page, err := list(q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// clusters returns all clusters by their P_Keys.
func (s *surface) clusters(ctx context.Context) (map[ib.PKey]*v1.Cluster, error) {
	out := map[ib.PKey]*v1.Cluster{}
	err := pages(func(q v1.PageQuery) (*v1.List[v1.Cluster], error) {
		return s.o.Tenancy.Clusters(ctx, v1.ClusterQuery{PageQuery: q})
	}, func(c *v1.Cluster) { out[c.PKey.Base()] = c })
	return out, err
}

// shown returns the clusters that the credential is shown, sorted by P_Key.
func (s *surface) shown(ctx context.Context) ([]*v1.Cluster, error) {
	all, err := s.clusters(ctx)
	var out []*v1.Cluster
	for k, c := range all {
		if sees(ctx, k) && !hidden(c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *v1.Cluster) int { return int(a.PKey) - int(b.PKey) })
	return out, err
}

// hidden reports a cluster that UFM would have deleted.
func hidden(c *v1.Cluster) bool {
	return strings.HasPrefix(c.Name, boundPrefix) && len(c.Hosts) == 0 && len(c.Users) == 0
}

// view shows a cluster with what was asked for.
func (s *surface) view(ctx context.Context, c *v1.Cluster, guids, qos bool) (*partitionView, error) {
	v := &partitionView{Partition: c.Name, IPoIB: s.o.Settings.IPoIB}
	if qos {
		v.QoS = s.qos()
	}
	if !guids {
		return v, nil
	}
	members := []memberView{}
	err := s.members(ctx, c.Name, func(h *v1.Host) { members = appendMembers(members, h, v1.MembershipFull) })
	for _, user := range c.Users {
		if err == nil {
			err = s.members(ctx, user, func(h *v1.Host) {
				if mayTake(ctx, h) {
					members = appendMembers(members, h, v1.MembershipLimited)
				}
			})
		}
	}
	v.GUIDs = &members
	return v, err
}

// members calls each with the hosts that are assigned to a cluster. A cluster that was deleted meanwhile has none.
func (s *surface) members(ctx context.Context, cluster string, each func(*v1.Host)) error {
	err := pages(func(q v1.PageQuery) (*v1.List[v1.Host], error) {
		return s.o.Lifecycle.Hosts(ctx, v1.HostQuery{Cluster: cluster, PageQuery: q})
	}, each)
	if refusal.IsKind(err, refusal.NotFound) {
		return nil
	}
	return err
}

func appendMembers(out []memberView, h *v1.Host, membership string) []memberView {
	for _, a := range h.HCAs {
		for _, p := range a.Ports {
			out = append(out, memberView{GUID: showGUID(p.GUID), Membership: membership})
		}
	}
	return out
}

// qos is what every partition has: no limit of its own. Rates above 300 Gb/s are none that clients accept.
func (s *surface) qos() *qosView {
	mtu := 4
	if s.o.Settings.MTU < 4096 {
		mtu = 2
	}
	return &qosView{MTU: mtu, Rate: 300}
}

// ofDefault shows the default partition, in which every host is a limited member.
func (s *surface) ofDefault(guids, qos bool) *partitionView {
	v := &partitionView{Partition: defaultName, Membership: v1.MembershipLimited, Index0: new(bool)}
	if guids {
		v.GUIDs = &[]memberView{}
	}
	if qos {
		v.QoS = s.qos()
	}
	return v
}

// partitions lists partitions: their P_Keys alone, or with what the query asks for.
func (s *surface) partitions(c *call) (any, error) {
	all, err := s.shown(c.ctx)
	if err != nil {
		return nil, err
	}
	guids, qos := c.flag("guids_data"), c.flag("qos_conf")
	if !guids && !qos {
		keys := []string{showPKey(ib.DefaultPKeyLimited)}
		for _, p := range all {
			keys = append(keys, showPKey(p.PKey))
		}
		return keys, nil
	}
	out := map[string]*partitionView{showPKey(ib.DefaultPKeyLimited): s.ofDefault(guids, qos)}
	for _, p := range all {
		if out[showPKey(p.PKey)], err = s.view(c.ctx, p, guids, qos); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// partition shows one partition. One that there is not, or that is not the credential's, is an empty object, for clients take
// that for a partition that was removed.
func (s *surface) partition(c *call) (any, error) {
	k, err := c.pkey()
	if err != nil {
		return nil, err
	}
	guids, qos := c.flag("guids_data"), c.flag("qos_conf")
	if k == ib.DefaultPKeyLimited {
		return s.ofDefault(guids, qos), nil
	}
	all, err := s.clusters(c.ctx)
	if err != nil {
		return nil, err
	}
	p := all[k]
	if p == nil || !sees(c.ctx, k) || hidden(p) {
		return struct{}{}, nil
	}
	return s.view(c.ctx, p, guids, qos)
}
