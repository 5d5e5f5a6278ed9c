package drills

import (
	"portcullis/fabricsm/drill"
)

// fullUse is the part of T15 that asks the service.
func fullUse(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ops"}, {name: "acme", pkeys: []string{"0x0001-0x0001"}}}})
	acme := v.cluster("ops", "acme", "h1", "h5")
	other := v.cluster("ops", "other", "h2", "h6")
	v.must("ops", "POST", "/v1/tenants", `{"name":"storage"}`)
	v.must("ops", "POST", "/v1/clusters", `{"name":"storage","tenant":"storage","shared":true}`)
	v.admit("ops", "storage", "h3")
	for _, c := range []string{"acme", "other"} {
		v.must("ops", "PUT", "/v1/clusters/"+c+"/uses/storage", "")
	}
	v.sync()
	storage := v.pkeyOf("storage")
	v.VictimOf("h1", "h5", acme)
	v.VictimOf("h2", "h6", other)

	s.Tried("tenant acme asks the service for full membership of the storage partition, for its host as a server there, and for the cluster of another tenant")
	v.mark()
	v.refused("full_membership_refused", "ops", "PUT", "/v1/clusters/acme/uses/storage", `{"membership":"full"}`)
	v.refused("p_key_out_of_scope", "acme", "PUT", "/v1/clusters/acme/uses/storage", "")
	v.refused("p_key_out_of_scope", "acme", "POST", "/v1/hosts/h8/assign", `{"cluster":"storage"}`)
	v.refused("cluster_not_shared", "ops", "PUT", "/v1/clusters/acme/uses/other", "")
	v.refused("cluster_in_use", "ops", "DELETE", "/v1/clusters/storage", "")
	v.audit("ops", "cluster.use", "full_membership_refused")
	v.sync()
	for _, h := range []string{"h1", "h5", "h2", "h6"} {
		s.Check(v.delivered(h, "h3", storage.Limited()), "%s does not reach the storage server", h)
		for _, k := range v.TenantKeys(v.SwitchPort(h, 1)) {
			s.Check(k != storage, "the switch port of %s has the storage partition as a full member", h)
		}
	}
	s.Check(!v.delivered("h1", "h2", storage.Limited()) && !v.delivered("h1", "h2", storage), "h1 reaches h2 over the storage partition")

	s.Tried("other uses the storage no longer")
	v.must("ops", "DELETE", "/v1/clusters/other/uses/storage", "")
	v.sync()
	if s.Check(!v.delivered("h2", "h3", storage.Limited()), "h2 reaches the storage server that it does not use any longer") {
		s.Stopped("who uses a shared partition loses it at the switch port, and keeps its own")
	}
}
