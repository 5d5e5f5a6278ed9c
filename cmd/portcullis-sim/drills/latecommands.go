package drills

import (
	"math/rand/v2"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
)

// lateCommands is T112: two controllers read a host, and what they then send arrives in any order.
func lateCommands(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}, {name: "bob"}, {name: "eve"}}})
	red := v.cluster("ann", "red", "h1", "h5")
	blue := v.cluster("ann", "blue", "h2", "h6")
	v.VictimOf("h1", "h5", red)
	v.VictimOf("h2", "h6", blue)
	random := rand.New(rand.NewPCG(112, s.Seed()))
	v.mark()
	refused := 0
	const trials = 6
	s.Tried("two controllers read which assignment h4 has; each then has it released or assigned; what they send arrives in a random order, %d times", trials)
	for range trials {
		refused += race(v, random)
	}
	v.Counted(refused == 0 || v.metric("eve", `status="412"`), "metric portcullis_http_requests_total: orders for an assignment that is over, 412")
	s.Check(refused > 0, "no command came late, so nothing is proven")
	s.Stopped("%d commands named an assignment that was over, and changed nothing: 412", refused)
}

// race has both controllers send a release and an assignment of h4 in a random order. It returns how many were refused as late.
func race(v *site, random *rand.Rand) (refused int) {
	s := v.scene
	tag := v.tag()
	type command struct{ who, path, body string }
	sent := []command{
		{"ann", "release", ""},
		{"bob", "release", ""},
		{"ann", "assign", `{"cluster":"red"}`},
		{"bob", "assign", `{"cluster":"blue"}`},
	}
	random.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	cluster := v.clusterOf("h4")
	for _, c := range sent {
		header := map[string]string{"If-Match": tag}
		if s.Off(ObjectVersions) {
			header["If-Match"] = "*"
		}
		late := v.tag() != tag
		a := v.send(c.who, "POST", "/v1/hosts/h4/"+c.path, c.body, header)
		s.Check(!late || a.code() == v1.CodeChanged, "%s of %s names an assignment of h4 that is over, and is answered with %d %q", c.path, c.who, a.status, a.code())
		if a.code() == v1.CodeChanged {
			refused++
		}
		if a.good() && c.path == "assign" {
			cluster = c.body[len(`{"cluster":"`) : len(c.body)-2]
		} else if a.good() {
			cluster = ""
		}
		now := v.clusterOf("h4")
		s.Check(now == cluster, "h4 is in %q after a command that leads to %q", now, cluster)
		v.sync()
	}
	return refused
}

// tag is the ETag of h4.
func (v *site) tag() string {
	return v.call("eve", "GET", "/v1/hosts/h4", "").header.Get("ETag")
}

func (v *site) clusterOf(host string) string {
	h, err := v.admission.Host(v.ctx(), host)
	v.scene.Must(err)
	return h.Cluster
}

// delayedRelease is T119: an order to release a host is delayed until the host is that of another tenant.
func delayedRelease(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}, {name: "eve"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	order := v.tag()
	if s.Off(ObjectVersions) {
		order = "*"
	}
	s.Tried("the order to release h4 from red is delayed on its way; meanwhile it is released, given to blue, and blue works on it; then the order arrives, and once more")
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	blue := v.cluster("ann", "blue", "h2", "h4")
	v.VictimOf("h2", "h4", blue)
	v.mark()
	for range 2 {
		a := v.send("ann", "POST", "/v1/hosts/h4/release", "", map[string]string{"If-Match": order})
		s.Check(a.code() == v1.CodeChanged, "the delayed order is answered with %d %q", a.status, a.code())
	}
	v.sync()
	s.Check(v.clusterOf("h4") == "blue", "h4 is in cluster %q after an order for its tenancy before", v.clusterOf("h4"))
	if s.Check(v.delivered("h2", "h4", blue), "h4 of blue was taken off by an order for its tenancy before") {
		s.Stopped("an order names the assignment that it means, and %s is that of another one", order)
	}
	now := v.tag()
	v.Counted(now != order, "ETag of host h4: %s, which counts its assignments", now)
	gone := v.send("ann", "DELETE", "/v1/clusters/blue", "", map[string]string{"If-Match": `"0"`})
	s.Check(gone.code() == v1.CodeChanged, "an order to delete another cluster of the name is answered with %d %q", gone.status, gone.code())
}
