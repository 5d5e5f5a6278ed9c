package ufm

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// portView is a port of a host. Clients want every field.
type portView struct {
	GUID     string `json:"guid"`
	Name     string `json:"name"`
	SystemID string `json:"systemID"`
	LID      int    `json:"lid"`
	DName    string `json:"dname"`
	System   string `json:"system_name"`
	Physical string `json:"physical_state"`
	Logical  string `json:"logical_state"`
	Number   int    `json:"number"`
	Peer     string `json:"peer,omitempty"` // "GUID/port" of the switch port that it is seen behind
}

// systemView is a host or a switch.
type systemView struct {
	GUID        string `json:"system_guid"`
	Name        string `json:"system_name"`
	Type        string `json:"type"`
	Model       string `json:"model"`
	Role        string `json:"role"`
	Vendor      string `json:"vendor"`
	Firmware    string `json:"fw_version"`
	IP          string `json:"ip"`
	Description string `json:"description"`
}

// Types of systems and the words of queries for them.
const (
	typeHost   = "host"
	typeSwitch = "switch"
	computer   = "computer"
)

// mayTake reports whether the credential may take a host that is in none of its clusters.
func mayTake(ctx context.Context, h *v1.Host) bool { return tenancy.CheckHost(ctx, h.ID, "", 0) == nil }

// hosts returns the hosts that the credential is shown, by id: those of its clusters, and those that it may take.
func (s *surface) hosts(ctx context.Context) ([]*v1.Host, error) {
	all, err := s.clusters(ctx)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{} // clusters of the credential
	for k, c := range all {
		own[c.Name] = sees(ctx, k)
	}
	var out []*v1.Host
	err = pages(func(q v1.PageQuery) (*v1.List[v1.Host], error) {
		return s.o.Lifecycle.Hosts(ctx, v1.HostQuery{PageQuery: q})
	}, func(h *v1.Host) {
		if own[h.Cluster] || mayTake(ctx, h) {
			out = append(out, h)
		}
	})
	return out, err
}

// seen is a port as the fabric shows it.
type seen struct {
	port v1.Port
	out  bool // of a node that is out of sight
}

func (s *surface) seen(ctx context.Context) (map[ib.GUID]seen, *v1.Fabric, error) {
	f, err := s.o.Fabric.Fabric(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := map[ib.GUID]seen{}
	for i := range f.Nodes {
		for _, p := range f.Nodes[i].Ports {
			if p.GUID != 0 {
				out[p.GUID] = seen{p, f.Nodes[i].OutOfSight}
			}
		}
	}
	return out, f, nil
}

// logicalState is the state of a port in the words of clients.
func logicalState(state string) string {
	switch state {
	case ib.PortActive.String(), ib.PortArmed.String():
		return state
	case ib.PortInit.String():
		return "Initialize"
	default:
		return "Down"
	}
}

// named returns what a list of names in the path, or the query, leaves in. Without one it is everything.
func named(c *call, query string) (func(...string) bool, error) {
	text, err := c.param("names")
	if err != nil {
		return nil, err
	}
	if text = cmp.Or(text, c.URL.Query().Get(query)); text == "" {
		return func(...string) bool { return true }, nil
	}
	want := strings.Split(text, ",")
	if len(want) > maxGUIDs {
		return nil, invalid("%d names: want at most %d in one request", len(want), maxGUIDs)
	}
	asked := make(map[string]bool, len(want))
	for _, w := range want {
		asked[strings.ToLower(w)] = true
	}
	return func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return asked[strings.ToLower(n)] })
	}, nil
}

// ports lists the ports of hosts.
func (s *surface) ports(c *call) (any, error) {
	out := []portView{}
	wanted, err := named(c, "system")
	if t := c.URL.Query().Get("sys_type"); err != nil || t != "" && !strings.EqualFold(t, computer) && !strings.EqualFold(t, typeHost) {
		return out, err
	}
	hosts, err := s.hosts(c.ctx)
	if err != nil {
		return nil, err
	}
	shown, _, err := s.seen(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		for i, a := range h.HCAs {
			for _, p := range a.Ports {
				v := viewPort(h, i, &a, &p, shown)
				if c.flag("active") && v.Logical != ib.PortActive.String() || !wanted(v.Name, v.GUID, v.System, v.SystemID) {
					continue
				}
				out = append(out, v)
			}
		}
	}
	return out, nil
}

func viewPort(h *v1.Host, hca int, a *v1.HCA, p *v1.HCAPort, shown map[ib.GUID]seen) portView {
	v := portView{
		GUID: showGUID(p.GUID), Name: showGUID(p.GUID) + "_" + strconv.Itoa(int(p.Num)), SystemID: showGUID(systemOf(a)), Number: int(p.Num),
		DName: "HCA-" + strconv.Itoa(hca+1) + "/" + strconv.Itoa(int(p.Num)), System: h.ID, Physical: "Link Down", Logical: "Down",
	}
	if at, ok := shown[p.GUID]; ok && !at.out {
		v.LID, v.Logical, v.Peer = int(at.port.LID), logicalState(at.port.State), at.port.Peer
		if v.Logical != "Down" {
			v.Physical = "Link Up"
		}
	}
	return v
}

// systemOf names the system of an adapter.
func systemOf(a *v1.HCA) ib.GUID { return cmp.Or(a.SystemImageGUID, a.NodeGUID) }

// systems lists hosts, and for a credential without a scope switches.
func (s *surface) systems(c *call) (any, error) {
	out := []systemView{}
	wanted, err := named(c, "system")
	if err != nil {
		return nil, err
	}
	kind := strings.ToLower(c.URL.Query().Get("type"))
	if kind == "" || kind == typeHost || kind == computer {
		hosts, err := s.hosts(c.ctx)
		if err != nil {
			return nil, err
		}
		for _, h := range hosts {
			v := systemView{Name: h.ID, Type: typeHost, Role: "endpoint", Description: h.Class}
			if len(h.HCAs) > 0 {
				v.GUID = showGUID(systemOf(&h.HCAs[0]))
			}
			if wanted(v.Name, v.GUID) {
				out = append(out, v)
			}
		}
	}
	if kind != "" && kind != typeSwitch || !sees(c.ctx, ib.DefaultPKeyLimited) {
		return out, nil
	}
	_, f, err := s.seen(c.ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range f.Nodes {
		v := systemView{GUID: showGUID(n.GUID), Name: n.Description, Type: typeSwitch, Description: n.Description}
		if n.Type == ib.NodeSwitch.String() && wanted(v.Name, v.GUID) {
			out = append(out, v)
		}
	}
	return out, nil
}
