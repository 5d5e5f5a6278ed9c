package drills

import (
	"slices"

	"portcullis/api/admission"
	"portcullis/api/events"
	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
)

// massRemoval is T125: one mistake, or one insider, takes the memberships of all hosts.
func massRemoval(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(RemovalBrake) {
			o.Brake = admission.BrakeLimits{Hosts: admission.MaxBrakeHosts, Share: 1}
		}
	}})
	all := []string{"h1", victim, "h2", "h4", "h6"}
	for _, h := range all[2:] {
		e.assign(h, "acme")
		s.Must(e.attest(e.hosts[h]))
	}
	e.hold("before", all...)

	s.Tried("the list of denied EKs is replaced by one that names every host, by mistake")
	e.mark()
	e.deny(all...)
	e.hold("after all EKs were denied", all...)
	if s.Off(RemovalBrake) {
		return
	}
	list, err := events.Book{Store: e.store}.List(e.ctx(), v1.EventQuery{Type: events.BrakeEngaged})
	s.Must(err)
	e.Counted(len(list.Items) == 1, "event %s", events.BrakeEngaged)
	s.Stopped("the brake stopped before the first of %d hosts, and an operator is to decide", len(all))

	s.Tried("the list is corrected, and names one host that was stolen")
	e.deny()
	e.deny("h6")
	e.hold("after one EK was denied", slices.DeleteFunc(slices.Clone(all), func(h string) bool { return h == "h6" })...)
	s.Check(e.phase("h6") != v1.PhaseAdmitted, "h6, which was stolen, is %s", e.phase("h6"))
	s.Check(len(e.TenantKeys(e.SwitchPort("h6", 1))) == 0, "the switch port of h6, which was stolen, holds %v", e.TenantKeys(e.SwitchPort("h6", 1)))

	s.Tried("an insider imports an inventory without hosts, and deletes tenant and cluster with all that is in them")
	_, err = e.admission.Inventory().ImportInventory(e.ctx(), "mallory", []inventory.File{{Name: "hosts.yaml", Data: []byte("hosts: []\n")}}, v1.RepairTicket{}, false)
	known, _, listed := inventory.Hosts().List(e.ctx(), e.store, "")
	s.Must(listed)
	s.Check(len(known) == len(hosts), "after an import without hosts (%v) %d of %d hosts are known", err, len(known), len(hosts))
	e.site.refused("cluster_in_use", "ops", "DELETE", "/v1/clusters/acme", "")
	e.site.refused("tenant_in_use", "ops", "DELETE", "/v1/tenants/acme", "")
	bare := e.send("ops", "POST", "/v1/hosts/h2/release", "", map[string]string{"If-Match": ""})
	s.Check(bare.status == 412 || bare.status == 428 || bare.status == 400, "a release that names no assignment is answered with %d", bare.status)
	e.sync()
	e.hold("after the insider", "h1", victim, "h2", "h4")
}

// deny makes the list of denied EKs those of some hosts, by a restart of the service.
func (e *evidenceSite) deny(list ...string) {
	denied := map[string]bool{}
	for _, h := range list {
		denied[e.hosts[h].EKDigest()] = true
	}
	e.options.Policy.Denied = denied
	e.restartService()
	e.serveAPI(e.log)
	e.sync()
}

// hold demands that hosts are admitted, and hold the P_Key of their cluster.
func (e *evidenceSite) hold(when string, list ...string) {
	for _, h := range list {
		e.scene.Check(e.phase(h) == v1.PhaseAdmitted, "%s, host %s is %s", when, h, e.phase(h))
		e.scene.Check(len(e.TenantKeys(e.SwitchPort(h, 1))) == 1, "%s, the switch port of %s holds %v", when, h, e.TenantKeys(e.SwitchPort(h, 1)))
	}
}
