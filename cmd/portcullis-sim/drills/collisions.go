package drills

import (
	"fmt"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// chosenPKey is T5.
func chosenPKey(s *drill.Scene) {
	scope := []string{"0x0100-0x01ff"}
	if s.Off(PKeyScopes) {
		scope = []string{"0x0001-0x7ffe"}
	}
	v := newSite(s, options{credentials: []account{{name: "ops"}, {name: "slurm", pkeys: scope}}})
	acme := v.cluster("ops", "acme", "h1", "h5")
	v.VictimOf("h1", "h5", acme)
	v.must("ops", "POST", "/v1/tenants", `{"name":"batch","p_keys":["0x0100-0x01ff"]}`)

	s.Tried("a scheduler, whose credential has the P_Keys %v, asks for the P_Key %v of tenant acme, for ones that are reserved, and has its host h7 assigned to acme's cluster; it deletes that cluster", scope, acme.Base())
	v.mark()
	name := `{"name":"steal","tenant":"batch","p_key":"%v"}`
	v.refused("p_key_out_of_scope", "slurm", "POST", "/v1/clusters", fmt.Sprintf(name, acme.Base()))
	v.refused("p_key_out_of_scope", "slurm", "POST", "/v1/clusters", fmt.Sprintf(name, acme))
	for _, reserved := range []string{"0x7fff", "0xffff", "0x8000", "0x0000"} {
		v.refused("p_key_reserved", "slurm", "POST", "/v1/clusters", fmt.Sprintf(name, reserved))
	}
	v.refused("p_key_out_of_scope", "slurm", "POST", "/v1/hosts/h7/assign", `{"cluster":"acme"}`)
	v.audit("slurm", "cluster.create", "p_key_out_of_scope")
	v.audit("slurm", "host.assign", "p_key_out_of_scope")
	v.attempt("h7")
	if s.Check(!v.delivered("h7", "h5", acme), "h7 reaches h5 of tenant acme") {
		s.Stopped("h7 holds no P_Key of acme, its packets end at its switch port")
		v.Reported(2*time.Second, "the packet of h7", v.PKeyViolation("h7", acme))
	}
	v.refused("p_key_out_of_scope", "slurm", "DELETE", "/v1/clusters/acme", "")
	v.refused("p_key_out_of_scope", "ops", "POST", "/v1/clusters", fmt.Sprintf(name, "0x0100"))
	v.jobs()
}

// reservedKeys is the part of T3 that asks the service.
func reservedKeys(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ops"}, {name: "all", pkeys: []string{"0x0001-0x7ffe"}}}})
	v.must("ops", "POST", "/v1/tenants", `{"name":"acme","p_keys":["0x0001-0x7ffe"]}`)
	s.Tried("a credential with every P_Key there is asks the service for the default partition, in each form, and in ways in which no P_Key is written")
	v.mark()
	for _, key := range []string{"0x7fff", "0xffff", "0x0000", "0x8000"} {
		v.refused("p_key_reserved", "all", "POST", "/v1/clusters", `{"name":"default","tenant":"acme","p_key":"`+key+`"}`)
	}
	v.audit("all", "cluster.create", "p_key_reserved")
	for _, odd := range []string{`"32767"`, `32767`, `"0x17fff"`, `"-1"`, `"0x7fff,0x1"`} {
		a := v.call("all", "POST", "/v1/clusters", `{"name":"default","tenant":"acme","p_key":`+odd+`}`)
		s.Check(!a.good(), "the service takes the P_Key %s", odd)
	}
	v.must("all", "POST", "/v1/clusters", `{"name":"mine","tenant":"acme"}`)
	v.admit("all", "mine", "h1", "h5")
	s.Check(v.Fabric.PKeyAt("h1", 1, 0) == ib.DefaultPKeyLimited, "h1 has the default P_Key as %v", v.Fabric.PKeyAt("h1", 1, 0))
	s.Check(!v.delivered("h1", "h2", ib.DefaultPKeyFull), "h1 reaches h2 over the default partition")
}

// attempt goes on with a host as if its assignment had been taken.
func (v *site) attempt(host string) {
	if h, err := v.admission.Host(v.ctx(), host); err == nil && h.Cluster != "" {
		v.attested(host)
		v.sync()
	}
}

// jobs is the part of T5 with two jobs whose numbers are the same modulo 32766, which
// is what the P_Key of a job is made of elsewhere.
func (v *site) jobs() {
	s := v.scene
	if s.Off(PKeyScopes) {
		return
	}
	const first, second = 5, 5 + 32766
	s.Tried("jobs %d and %d, whose numbers modulo 32766 are the same, each get a partition", first, second)
	for _, job := range []struct {
		number int
		host   string
	}{{first, "h3"}, {second, "h7"}} {
		cluster := fmt.Sprintf("job-%d", job.number)
		v.must("slurm", "POST", "/v1/clusters", `{"name":"`+cluster+`","tenant":"batch"}`)
		v.admit("slurm", cluster, job.host)
	}
	one, other := v.pkeyOf("job-5"), v.pkeyOf("job-32771")
	if s.Check(one != other && one.Base() >= 0x100 && other.Base() <= 0x1FF, "job 5 has the P_Key %v and job 32771 %v", one, other) {
		s.Stopped("numbers of jobs are names: the service maps them to %v and %v, which are free and the credential's", one, other)
	}
	v.refused("p_key_used", "slurm", "POST", "/v1/clusters", fmt.Sprintf(`{"name":"again","tenant":"batch","p_key":"%v"}`, one.Base()))
	v.Run(10 * time.Second) // traps about P_Keys are paced
	v.Attack()
	for _, way := range [][2]string{{"h7", "h3"}, {"h3", "h7"}} {
		r := v.Send(way[0], way[1], one)
		s.Check(r.Fate != sim.Delivered, "%s reaches %s, which is in another job, with the P_Key of job 5", way[0], way[1])
	}
	v.Reported(2*time.Second, "the dropped packet", v.PKeyViolation("h7", one))
}
