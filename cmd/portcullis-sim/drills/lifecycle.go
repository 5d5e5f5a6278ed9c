package drills

import (
	"fmt"
	"strings"
	"time"

	"portcullis/api/admission"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// deletedPartition is T16.
func deletedPartition(s *drill.Scene) {
	device := sim.Modern()
	device.KeepsPKeys = true
	v := newSite(s, options{
		fabric:      drill.SiteOptions{Fabric: sim.Options{Device: device}},
		credentials: []account{{name: "ann"}, {name: "bob"}},
		admission: func(o *admission.Options) {
			o.PKeyFirst, o.PKeyLast, o.PKeyMinAge = 0x0001, 0x0002, time.Minute
			o.Tenant = loose{s.Off(DeleteGuard), s.Off(PKeyQuarantine)}
			if s.Off(PKeyQuarantine) {
				o.PKeyMinAge = -1
			}
		},
	})
	blue := v.cluster("ann", "blue", "h2", "h6")
	v.VictimOf("h2", "h6", blue)
	red := v.cluster("ann", "red", "h1", "h5")

	s.Tried("bob deletes cluster red while hosts of it are members, and makes another one of that name for himself")
	v.mark()
	v.refused("cluster_in_use", "bob", "DELETE", "/v1/clusters/red", "")
	v.audit("bob", "cluster.delete", "cluster_in_use")
	v.sync()
	v.membersOnly("h1", "h2", "h5", "h6")

	s.Tried("ann releases the last hosts of red; h1 is switched off, with the P_Key in the memory of its HCA")
	s.Must(v.Fabric.PowerOff("h1"))
	v.Collect()
	for _, h := range []string{"h1", "h5"} {
		v.must("ann", "POST", "/v1/hosts/"+h+"/release", "")
	}
	v.sync()
	if s.Check(v.pkeyOf("red") == red, "cluster red went with its last host, or has another P_Key: %v", v.pkeyOf("red")) {
		s.Stopped("an empty cluster stays, with its P_Key")
	}
	v.remade(red)
}

// remade is the part of T16 in which the empty cluster is deleted and created again.
func (v *site) remade(red ib.PKey) {
	s := v.scene
	s.Tried("bob deletes the empty cluster and creates it again at once, with other properties; ann, who does not know, assigns h4 to red")
	v.mark()
	v.must("bob", "DELETE", "/v1/clusters/red", "")
	v.must("bob", "POST", "/v1/tenants", `{"name":"other"}`)
	const again = `{"name":"red","tenant":"other","shared":true}`
	v.refused("pkeys_exhausted", "bob", "POST", "/v1/clusters", again)
	quarantined := v.call("ann", "GET", "/v1/pkeys/quarantined", "").body.String()
	v.Counted(strings.Contains(quarantined, red.Base().String()), "the list of quarantined P_Keys has %v: %s", red.Base(), strings.TrimSpace(quarantined))
	v.onlyMembersHold("h2", "h6")

	s.Must(v.Fabric.PowerOn("h1"))
	v.Collect()
	v.sync()
	v.Run(2 * time.Minute)
	v.sync()
	if v.pkeyOf("red") == 0 {
		v.must("bob", "POST", "/v1/clusters", again)
		s.Stopped("its P_Key is given out again when it was proven absent, also from the HCA that had been off, and rested")
	}
	v.refused("cluster_changed", "ann", "POST", "/v1/hosts/h4/assign", `{"cluster":"red","p_key":"0x0007"}`)
	v.admit("bob", "red", "h3", "h7")
	s.Check(v.delivered("h3", "h7", v.pkeyOf("red")), "hosts of the new cluster do not reach each other")
	s.Check(!v.delivered("h1", "h3", red), "h1, which was in the cluster before, reaches h3 of the new one")
	v.membersOnly("h2", "h3", "h6", "h7")
}

// membersOnly demands that switch ports and HCAs hold P_Keys of tenants where hosts
// are in a cluster that exists, and nowhere else.
func (v *site) membersOnly(list ...string) {
	exist := make(map[ib.PKey]bool)
	clusters, err := v.admission.Tenancy().Clusters(v.ctx(), v1.ClusterQuery{})
	v.scene.Must(err)
	for _, c := range clusters.Items {
		exist[c.PKey.Full()] = true
	}
	for _, h := range list {
		for _, k := range v.TenantKeys(v.SwitchPort(h, 1)) {
			v.scene.Check(exist[k], "the switch port of %s holds %v, which is that of no cluster", h, k)
		}
		v.scene.Check(len(v.TenantKeys(v.SwitchPort(h, 1))) == 1, "the switch port of %s holds %v", h, v.TenantKeys(v.SwitchPort(h, 1)))
	}
	v.onlyMembersHold(list...)
}

// onlyMembersHold demands that no other host's switch port, and no HCA of a host that
// is in no cluster, holds a P_Key that belongs to a cluster.
func (v *site) onlyMembersHold(members ...string) {
	clusters, err := v.admission.Tenancy().Clusters(v.ctx(), v1.ClusterQuery{})
	v.scene.Must(err)
	in := fmt.Sprint(members)
	for _, h := range hosts {
		if strings.Contains(in, h) {
			continue
		}
		for _, at := range []sim.Endpoint{drill.Port(h), v.SwitchPort(h, 1)} {
			for _, k := range v.TenantKeys(at) {
				for _, c := range clusters.Items {
					v.scene.Check(c.PKey.Base() != k.Base(), "%s port %d holds %v of cluster %s, in which %s is not", at.Node, at.Port, k, c.Name, h)
				}
			}
		}
	}
}
