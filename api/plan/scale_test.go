package plan

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "portcullis/api/v1"
)

// TestPlanOfAWholeSite: forty thousand hosts that move between clusters which use a shared one are planned at once, and the answer has
// a size that clients read.
func TestPlanOfAWholeSite(t *testing.T) {
	const number = 40_000
	f := &Found{Tenants: map[string]v1.Tenant{"t": {Name: "t"}}, Clusters: map[string]v1.Cluster{"disk": {Name: "disk", Tenant: "t", Shared: true}}, Hosts: map[string]Host{}}
	w := &v1.Wanted{Set: set}
	for i := range 100 {
		name := fmt.Sprintf("c%02d", i)
		c := v1.Cluster{Name: name, Tenant: "t", Uses: []string{"disk"}}
		a := v1.WantedAssignment{Cluster: name}
		for j := range number / 100 {
			c.Hosts = append(c.Hosts, fmt.Sprintf("gpu-%05d", i*number/100+j))
			a.Hosts = append(a.Hosts, fmt.Sprintf("gpu-%05d", ((i+1)%100)*number/100+j))
		}
		for _, h := range c.Hosts {
			f.Hosts[h] = Host{Cluster: name, Set: set, Epoch: 1}
		}
		f.Clusters[name] = c
		w.Assignments = append(w.Assignments, a)
	}
	for _, h := range w.Assignments[0].Hosts[:100] { // as new servers, beside all users
		w.Assignments = append(w.Assignments, v1.WantedAssignment{Cluster: "disk", Hosts: []string{h}})
	}
	w.Assignments[0].Hosts = w.Assignments[0].Hosts[100:]
	began := time.Now()
	p := Make(w, f)
	took := time.Since(began)
	text, err := json.Marshal(p)
	if err != nil || len(p.Changes) != 2*number || p.Removals != number || len(text) > 64<<20 || took > 20*time.Second {
		t.Errorf("%d changes, %d removals, %d bytes, %v, %v", len(p.Changes), p.Removals, len(text), took, err)
	}
	for _, c := range p.Changes {
		if len(c.After) > 4 || len(c.Keys) > 3 {
			t.Fatalf("%s %s has %d keys and comes after %d", c.Verb, c.Object, len(c.Keys), len(c.After))
		}
	}
}
