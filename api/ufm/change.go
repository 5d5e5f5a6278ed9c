package ufm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"portcullis/api/clustername"
	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/strictjson"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Bounds of a body.
const (
	maxBody   = 256 << 10
	maxValues = 3 * maxGUIDs
)

// Codes of refusals.
const (
	codeReserved   = "p_key_reserved"
	codeExists     = "p_key_exists"
	codeNoTenant   = "tenant_of_p_key"
	codeUnknown    = "p_key_unknown"
	codeGUID       = "guid_unknown"
	codeHost       = "hosts_unknown"
	codeMembership = "membership_refused"
	codeQoS        = "qos_refused"
)

// order is the body of a change. A field that is not here is refused: it may narrow what was asked for.
type order struct {
	PKey        *string   `json:"pkey"`
	GUIDs       *[]string `json:"guids"`
	Membership  string    `json:"membership"`
	Memberships []string  `json:"memberships"`
	Default     string    `json:"default_membership"` // old name of membership
	Index0      *bool     `json:"index0"`
	IPoIB       *bool     `json:"ip_over_ib"`
	MTU         *int      `json:"mtu_limit"`
	Rate        *float64  `json:"rate_limit"`
	Level       *int      `json:"service_level"`
	Name        string    `json:"partition_name"`
	HostNames   string    `json:"hosts_names"`
}

// read reads the body of a change and its P_Key.
func (s *surface) read(c *call) (*order, ib.PKey, error) {
	data, err := io.ReadAll(io.LimitReader(c.Body, maxBody+1))
	if len(data) > maxBody {
		return nil, 0, invalid("a body of more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, 0, invalid("the body could not be read to its end")
	}
	o, k, err := parseOrder(data)
	if err == nil {
		err = s.sameQoS(o)
	}
	return o, k, err
}

// parseOrder reads a body. It is total: each body is an order or an error.
func parseOrder(data []byte) (*order, ib.PKey, error) {
	if err := strictjson.Check(data, maxValues); err != nil {
		return nil, 0, invalid("the body is not JSON as it should be: %v", err)
	}
	var o order
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return nil, 0, invalid("the body is not what this path takes: %s", refusal.Clip(err.Error()))
	}
	if o.PKey == nil {
		return nil, 0, invalid("pkey is missing")
	}
	k, err := parsePKey(*o.PKey)
	if err != nil {
		return nil, 0, err
	}
	if k == 0 || k == ib.DefaultPKeyLimited {
		return nil, 0, reserved(k)
	}
	return &o, k, o.full()
}

func reserved(k ib.PKey) error {
	return refusal.New(refusal.Refused, codeReserved, "use 0x1 to 0x7ffe", "P_Key %s is reserved, and its partition is not changed here", showPKey(k))
}

// full refuses any membership but full: hosts of a cluster are full members of its partition, and limited ones only of shared
// clusters that their own cluster uses.
func (o *order) full() error {
	all := append([]string{o.Membership, o.Default}, o.Memberships...)
	if o.Memberships != nil {
		all = o.Memberships // it is what counts
		if o.GUIDs == nil || len(*o.GUIDs) != len(o.Memberships) {
			return invalid("memberships has %d entries: want one for each GUID", len(o.Memberships))
		}
	}
	for _, m := range all {
		switch {
		case m == "" && o.Memberships == nil, strings.EqualFold(m, v1.MembershipFull):
		case strings.EqualFold(m, v1.MembershipLimited):
			return refusal.New(refusal.Conflict, codeMembership, "use full; for limited members make a shared cluster (portcullis cluster create --shared) and have theirs use it",
				"membership limited is asked for, and hosts are full members of the partition of their cluster")
		default:
			return invalid("membership %q: want full or limited", refusal.Clip(m))
		}
	}
	return nil
}

// sameQoS refuses what a partition does not have.
func (s *surface) sameQoS(o *order) error {
	is := s.qos()
	if o.MTU != nil && *o.MTU != is.MTU || o.Level != nil && *o.Level != is.Level || o.Rate != nil && *o.Rate != is.Rate {
		return refusal.New(refusal.Conflict, codeQoS, "leave these out; fabric.qos of the service's configuration is about all partitions",
			"partitions have no quality of service of their own: all have mtu_limit %d, rate_limit %v (no limit) and service_level %d", is.MTU, is.Rate, is.Level)
	}
	return nil
}

// find returns the cluster that has a P_Key, nil without one.
func (s *surface) find(ctx context.Context, k ib.PKey) (*v1.Cluster, error) {
	all, err := s.clusters(ctx)
	return all[k], err
}

// create makes the cluster of a P_Key. Which tenant it is of is found by the ranges of tenants.
func (s *surface) create(c *call, k ib.PKey, name string) (*v1.Cluster, error) {
	n := v1.NewCluster{Name: name, PKey: &k}
	if !sees(c.ctx, k) {
		own, _ := clustername.Parse(name)
		n.Tenant = cmp.Or(own.Tenant, name) // the service refuses the P_Key, and records that, before it looks for a tenant
	} else {
		var err error
		if n.Tenant, err = s.tenantOf(c.ctx, k); err != nil {
			return nil, err
		}
	}
	return s.o.Tenancy.CreateCluster(store.Growing(c.ctx), c.owner, n)
}

// tenantOf returns the one tenant that has a P_Key in its ranges.
func (s *surface) tenantOf(ctx context.Context, k ib.PKey) (string, error) {
	var found []string
	var wrong error
	err := pages(func(q v1.PageQuery) (*v1.List[v1.Tenant], error) {
		return s.o.Tenancy.Tenants(ctx, v1.TenantQuery{PageQuery: q})
	}, func(t *v1.Tenant) {
		for _, text := range t.PKeys {
			r, err := ib.ParsePKeyRange(text)
			wrong = errors.Join(wrong, err)
			if err == nil && r.Contains(k) {
				found = append(found, t.Name)
				return
			}
		}
	})
	switch {
	case err != nil || wrong != nil:
		return "", errors.Join(err, wrong)
	case len(found) == 1:
		return found[0], nil
	default:
		return "", refusal.New(refusal.Conflict, codeNoTenant, "create one tenant whose ranges have it: portcullis tenant create NAME --p-keys RANGE",
			"P_Key %s is in the ranges of %d tenants, and a partition is one tenant's", showPKey(k), len(found))
	}
}

// resolve returns the hosts that have GUIDs, each once, in the order of their ids, and which GUIDs no host has.
func (s *surface) resolve(ctx context.Context, guids []ib.GUID) (hosts []*v1.Host, unknown []ib.GUID, err error) {
	if len(guids) == 0 {
		return nil, nil, nil
	}
	want := make(map[ib.GUID]bool, len(guids))
	for _, g := range guids {
		want[g] = true
	}
	err = pages(func(q v1.PageQuery) (*v1.List[v1.Host], error) {
		return s.o.Lifecycle.Hosts(ctx, v1.HostQuery{PageQuery: q})
	}, func(h *v1.Host) {
		has := false
		for _, a := range h.HCAs {
			for _, p := range a.Ports {
				has = has || want[p.GUID]
				delete(want, p.GUID)
			}
		}
		if has {
			hosts = append(hosts, h)
		}
	})
	for _, g := range guids {
		if want[g] {
			unknown = append(unknown, g)
		}
	}
	return hosts, unknown, err
}

// known is resolve for GUIDs that all have to be known.
func (s *surface) known(ctx context.Context, guids []ib.GUID) ([]*v1.Host, error) {
	hosts, unknown, err := s.resolve(ctx, guids)
	if err == nil && len(unknown) > 0 {
		texts := make([]string, len(unknown))
		for i, g := range unknown {
			texts[i] = showGUID(g)
		}
		err = refusal.New(refusal.NotFound, codeGUID, "import the inventory that has them; GUIDs of virtual functions are none of it, so name those of the host's ports",
			"no host of the inventory has these GUIDs: %s; nothing was done", refusal.Some(texts))
	}
	return hosts, err
}

// byName returns the hosts with these ids, and which ids no host has.
func (s *surface) byName(ctx context.Context, list string) (hosts []*v1.Host, unknown []string, err error) {
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	if len(names) > maxHosts {
		return nil, nil, invalid("%d hosts: want at most %d in one request", len(names), maxHosts)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		h, err := s.o.Lifecycle.Host(ctx, name)
		switch {
		case refusal.IsKind(err, refusal.NotFound):
			unknown = append(unknown, refusal.Clip(name))
		case err != nil:
			return nil, nil, err
		default:
			hosts = append(hosts, h)
		}
	}
	return hosts, unknown, nil
}

// charge counts a request as as many as our own API would take for it.
func (s *surface) charge(c *call, orders int) error {
	if orders <= 1 || s.o.Charge(c.owner, orders-1) {
		return nil
	}
	return refusal.New(refusal.Limited, v1.CodeRateLimited, "wait a second, then try again", "the request is for %d orders, and the credential has used up its orders of this second", orders)
}

// of returns a context for an order about the host as it was seen.
func of(ctx context.Context, h *v1.Host) context.Context {
	return ifmatch.With(ctx, []string{strconv.FormatInt(h.Epoch, 10)})
}

// assign has hosts be in a cluster. Those that are in it already stay as they are.
func (s *surface) assign(c *call, to *v1.Cluster, hosts []*v1.Host) error {
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(h *v1.Host) bool { return h.Cluster == to.Name })
	if len(hosts) == 0 {
		return nil
	}
	if err := errors.Join(s.o.Believes(), s.charge(c, len(hosts))); err != nil {
		return err
	}
	for _, h := range hosts {
		_, err := s.o.Lifecycle.Assign(of(store.Growing(c.ctx), h), c.owner, h.ID, v1.Assignment{Cluster: to.Name, PKey: &to.PKey})
		if err != nil {
			return err
		}
	}
	return nil
}

// release takes hosts off a cluster. Those that are not in it stay as they are.
func (s *surface) release(c *call, from *v1.Cluster, hosts []*v1.Host) error {
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(h *v1.Host) bool { return h.Cluster != from.Name })
	if err := s.charge(c, len(hosts)); err != nil {
		return err
	}
	for _, h := range hosts {
		if _, err := s.o.Lifecycle.Release(of(c.ctx, h), c.owner, h.ID); err != nil {
			return err
		}
	}
	return nil
}

// refused reports a P_Key out of the scope of the credential.
func refused(ctx context.Context, k ib.PKey) error {
	return tenancy.CheckCluster(ctx, &tenancy.Cluster{Name: "of " + showPKey(k), PKey: k})
}
