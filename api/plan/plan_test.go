package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
)

const set = "prod"

// world plays the service: it makes changes by the rules that the service has, and refuses the others.
type world struct {
	Found
	versions int
}

func (w *world) version() string { w.versions++; return fmt.Sprint("v", w.versions) }

// clone returns a copy that shares nothing.
func (w *world) clone() *world {
	out := &world{Found{maps.Clone(w.Tenants), maps.Clone(w.Clusters), maps.Clone(w.Hosts), nil}, w.versions}
	for name, c := range out.Clusters {
		c.Hosts, c.Uses, c.Users, c.UseSets = slices.Clone(c.Hosts), slices.Clone(c.Uses), slices.Clone(c.Users), maps.Clone(c.UseSets)
		out.Clusters[name] = c
	}
	return out
}

func without(list []string, s string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return x == s })
}

func (w *world) use(cluster, shared, set string) {
	c, s := w.Clusters[cluster], w.Clusters[shared]
	c.Uses, s.Users, c.UseSets = append(c.Uses, shared), append(s.Users, cluster), maps.Clone(c.UseSets)
	if set != "" {
		if c.UseSets == nil {
			c.UseSets = map[string]string{}
		}
		c.UseSets[shared] = set
	}
	w.Clusters[cluster], w.Clusters[shared] = c, s
}

func (w *world) stop(cluster, shared string) {
	c, s := w.Clusters[cluster], w.Clusters[shared]
	c.Uses, s.Users, c.UseSets = without(c.Uses, shared), without(s.Users, cluster), maps.Clone(c.UseSets)
	delete(c.UseSets, shared)
	w.Clusters[cluster], w.Clusters[shared] = c, s
}

func (w *world) assign(host, cluster, set string) {
	c, h := w.Clusters[cluster], w.Hosts[host]
	c.Hosts = append(slices.Clone(c.Hosts), host)
	w.Clusters[cluster], w.Hosts[host] = c, Host{Cluster: cluster, Set: set, Epoch: h.Epoch + 1}
}

// make makes one change, or says why the service refuses it.
func (w *world) make(c *v1.PlannedChange) error {
	t, cl, h := w.Tenants[c.Name], w.Clusters[c.Name], w.Hosts[c.Name]
	has := map[string]string{"tenant": t.Version, "cluster": cl.Version, "host": fmt.Sprint(h.Epoch)}
	kind, _, _ := strings.Cut(c.Object, "/")
	if c.Version != "" && c.Version != has[kind] || c.Version == "" && c.Removes {
		return fmt.Errorf("version %q, has %q", c.Version, has[kind])
	}
	switch c.Verb {
	case v1.PlanStopUse:
		if !slices.Contains(cl.Uses, c.Shared) {
			return fmt.Errorf("%s is not used", c.Shared)
		}
		w.stop(c.Name, c.Shared)
	case v1.PlanRelease:
		if h.Cluster == "" {
			return fmt.Errorf("not assigned")
		}
		from := w.Clusters[h.Cluster]
		from.Hosts = without(from.Hosts, c.Name)
		w.Clusters[h.Cluster], w.Hosts[c.Name] = from, Host{Epoch: h.Epoch, Releasing: true}
	case v1.PlanDeleteCluster:
		if cl.Name == "" || len(cl.Hosts) > 0 || len(cl.Users) > 0 {
			return fmt.Errorf("in use: %+v", cl)
		}
		for _, s := range cl.Uses {
			w.stop(c.Name, s)
		}
		delete(w.Clusters, c.Name)
	case v1.PlanDeleteTenant:
		for _, other := range w.Clusters {
			if other.Tenant == c.Name {
				return fmt.Errorf("it has cluster %s", other.Name)
			}
		}
		delete(w.Tenants, c.Name)
	case v1.PlanCreateTenant:
		if t.Name != "" {
			return fmt.Errorf("exists")
		}
		w.Tenants[c.Name] = v1.Tenant{Name: c.Name, Set: c.Tenant.Set, PKeys: c.Tenant.PKeys, Version: w.version()}
	case v1.PlanSetQuota:
		if t.Name == "" {
			return fmt.Errorf("no such tenant")
		}
		t.Quota, t.Version = c.Quota, w.version()
		w.Tenants[c.Name] = t
	case v1.PlanCreateCluster:
		if cl.Name != "" || w.Tenants[c.Cluster.Tenant].Name == "" {
			return fmt.Errorf("exists, or has no tenant")
		}
		w.Clusters[c.Name] = v1.Cluster{Name: c.Name, Tenant: c.Cluster.Tenant, Shared: c.Cluster.Shared, Set: c.Cluster.Set, Version: w.version()}
	case v1.PlanUse:
		if cl.Name == "" || cl.Shared || !w.Clusters[c.Shared].Shared || slices.Contains(cl.Uses, c.Shared) {
			return fmt.Errorf("cannot use %s", c.Shared)
		}
		w.use(c.Name, c.Shared, c.Use.Set)
	case v1.PlanAssign:
		if h.Releasing && c.Waits { // the caller waits for the proof
			h.Releasing = false
			w.Hosts[c.Name] = h
		}
		if h.Cluster != "" || h.Releasing || w.Clusters[c.Assignment.Cluster].Name == "" {
			return fmt.Errorf("cannot be assigned: %+v", h)
		}
		w.assign(c.Name, c.Assignment.Cluster, c.Assignment.Set)
	default:
		return fmt.Errorf("verb %q", c.Verb)
	}
	return nil
}

// pairs returns which hosts reach each other: those of a cluster, and those of a cluster and of a shared one that it uses.
func (w *world) pairs() map[[2]string]bool {
	out := map[[2]string]bool{}
	pair := func(a, b string) {
		if a != b {
			out[[2]string{min(a, b), max(a, b)}] = true
		}
	}
	for _, c := range w.Clusters {
		for i, a := range c.Hosts {
			for _, b := range c.Hosts[i+1:] {
				pair(a, b)
			}
			for _, s := range c.Uses {
				for _, b := range w.Clusters[s].Hosts {
					pair(a, b)
				}
			}
		}
	}
	return out
}

// someWorld makes a world in which some was created for the set and some was not.
func someWorld(r *rand.Rand) *world {
	w := &world{Found: Found{Tenants: map[string]v1.Tenant{}, Clusters: map[string]v1.Cluster{}, Hosts: map[string]Host{}}}
	ours := func() string {
		return []string{"", set, set, "other"}[r.IntN(4)]
	}
	for i := range r.IntN(4) {
		name := fmt.Sprint("t", i)
		t := v1.Tenant{Name: name, Set: ours(), Version: w.version()}
		if r.IntN(2) == 0 {
			t.Quota = &v1.TenantQuota{Hosts: new(r.IntN(5))}
		}
		w.Tenants[name] = t
	}
	for i := range 6 {
		if tenant := fmt.Sprint("t", r.IntN(4)); w.Tenants[tenant].Name != "" && r.IntN(2) == 0 {
			name := fmt.Sprint("c", i)
			w.Clusters[name] = v1.Cluster{Name: name, Tenant: tenant, Shared: i >= 4, Set: ours(), Version: w.version()}
		}
	}
	names := slices.Sorted(maps.Keys(w.Clusters))
	for _, a := range names {
		for _, b := range names {
			if !w.Clusters[a].Shared && w.Clusters[b].Shared && r.IntN(2) == 0 {
				w.use(a, b, ours())
			}
		}
	}
	for i := range 8 {
		id := fmt.Sprint("h", i)
		w.Hosts[id] = Host{Epoch: int64(r.IntN(3)), Releasing: r.IntN(6) == 0}
		if len(names) > 0 && !w.Hosts[id].Releasing && r.IntN(3) > 0 {
			w.assign(id, names[r.IntN(len(names))], ours())
		}
	}
	return w
}

// someWanted wants some of what is there and some of what is not.
func someWanted(r *rand.Rand, f *Found) *v1.Wanted {
	w := &v1.Wanted{Set: set, Prune: r.IntN(2) == 0, TakeOver: r.IntN(3) > 0}
	tenants := slices.Sorted(maps.Keys(f.Tenants))
	for i := range 4 {
		name := fmt.Sprint("t", i)
		if r.IntN(2) == 0 {
			t := v1.WantedTenant{Name: name}
			if r.IntN(2) == 0 {
				t.Quota = &v1.WantedQuota{Hosts: new(r.IntN(6) - 1)}
			}
			w.Tenants = append(w.Tenants, t)
			tenants = append(tenants, name)
		}
	}
	if len(tenants) == 0 {
		return w
	}
	known := slices.Sorted(maps.Keys(f.Clusters))
	var shared []string
	for i := 5; i >= 0; i-- {
		name := fmt.Sprint("c", i)
		if r.IntN(2) == 0 {
			if f.Clusters[name].Shared && r.IntN(2) == 0 {
				shared = append(shared, name)
			}
			continue
		}
		c := v1.WantedCluster{Name: name, Tenant: tenants[r.IntN(len(tenants))], Shared: i >= 4}
		if has, there := f.Clusters[name]; there {
			c.Tenant = has.Tenant
		}
		if c.Shared {
			shared = append(shared, name)
		} else {
			for _, s := range shared {
				if r.IntN(2) == 0 {
					c.Uses = append(c.Uses, s)
				}
			}
		}
		w.Clusters = append(w.Clusters, c)
		known = append(known, name)
	}
	if len(known) == 0 {
		return w
	}
	for i := range 8 {
		if r.IntN(2) == 0 {
			w.Assignments = append(w.Assignments, v1.WantedAssignment{Cluster: known[r.IntN(len(known))], Hosts: []string{fmt.Sprint("h", i)}})
		}
	}
	return w
}

// carry makes the changes of a plan as a caller does: in order, and not after a failed one that it names. fails says which are refused
// from outside. look is called after each.
func carry(t *testing.T, w *world, p *v1.Plan, fails func(int) bool, look func(*v1.PlannedChange)) {
	t.Helper()
	failed := map[string]bool{}
	seen := map[string]bool{}
	for i := range p.Changes {
		c := &p.Changes[i]
		skip := slices.ContainsFunc(c.After, func(k string) bool { return failed[k] })
		for _, k := range c.After {
			if !seen[k] && !strings.HasPrefix(k, "leave/") && !strings.HasPrefix(k, "near/") {
				t.Fatalf("%s %s comes after %s, which is no earlier change", c.Verb, c.Object, k)
			}
		}
		if skip || fails(i) {
			for _, k := range c.Keys {
				failed[k] = true
			}
		} else if err := w.make(c); err != nil {
			t.Fatalf("change %d, %s %s: %v\nplan %+v", i, c.Verb, c.Object, err, p.Changes)
		}
		for _, k := range c.Keys {
			seen[k] = true
		}
		look(c)
	}
}

// TestPlansAreSafe: each change of a plan is one that the service takes; when all are made nothing is left to do; and no two hosts
// reach each other on the way that neither did before nor are wanted to, even when some changes fail.
func TestPlansAreSafe(t *testing.T) {
	plans, moves, prunes := 0, 0, 0
	for seed := range uint64(4_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		start := someWorld(r)
		wanted := someWanted(r, &start.Found)
		p := Make(wanted, &start.Found)
		if len(p.Conflicts) > 0 {
			if len(p.Changes) > 0 {
				t.Fatalf("seed %d: a plan with conflicts has changes", seed)
			}
			continue
		}
		plans++
		for _, c := range p.Changes {
			if c.Waits {
				moves++
			}
			if c.Verb == v1.PlanDeleteCluster {
				prunes++
			}
		}
		end := start.clone()
		carry(t, end, p, func(int) bool { return false }, func(*v1.PlannedChange) {})
		if again := Make(wanted, &end.Found); len(again.Changes)+len(again.Conflicts) > 0 {
			t.Fatalf("seed %d: after the plan %+v is left %+v", seed, p.Changes, again)
		}
		goal := end.pairs()
		before := start.pairs()
		for _, odds := range []int{0, 2, 4} {
			w := start.clone()
			carry(t, w, p, func(int) bool { return odds > 0 && r.IntN(odds) == 0 }, func(c *v1.PlannedChange) {
				for pair := range w.pairs() {
					if !before[pair] && !goal[pair] {
						t.Fatalf("seed %d: after %s %s hosts %v reach each other, which is neither found nor wanted\nplan %+v", seed, c.Verb, c.Object, pair, p.Changes)
					}
				}
			})
			rest := Make(wanted, &w.Found)
			if len(rest.Conflicts) > 0 && !wanted.TakeOver {
				continue // what failed is held by others now as before
			}
			carry(t, w, rest, func(int) bool { return false }, func(*v1.PlannedChange) {})
			if left := Make(wanted, &w.Found); len(left.Changes) > 0 {
				t.Fatalf("seed %d: running again leaves %+v", seed, left.Changes)
			}
		}
	}
	if plans < 1000 || moves < 500 || prunes < 50 {
		t.Errorf("%d plans, %d moves and %d deletions: too few to show anything", plans, moves, prunes)
	}
}

// TestOthersAreKept: what was not created for the set is never removed, and without TakeOver its hosts stay.
func TestOthersAreKept(t *testing.T) {
	removals := 0
	for seed := range uint64(4_000) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := someWorld(r)
		wanted := someWanted(r, &w.Found)
		p := Make(wanted, &w.Found)
		count := 0
		for _, c := range p.Changes {
			if c.Removes {
				count++
			}
			var ok bool
			switch c.Verb {
			case v1.PlanRelease:
				named := slices.ContainsFunc(wanted.Assignments, func(a v1.WantedAssignment) bool { return slices.Contains(a.Hosts, c.Name) })
				ok = w.Hosts[c.Name].Set == set && (wanted.Prune || named) || wanted.TakeOver && named
			case v1.PlanDeleteCluster:
				ok = wanted.Prune && w.Clusters[c.Name].Set == set
			case v1.PlanDeleteTenant:
				ok = wanted.Prune && w.Tenants[c.Name].Set == set
			case v1.PlanStopUse:
				ok = wanted.Prune && w.Clusters[c.Name].UseSets[c.Shared] == set
			default:
				ok = !c.Removes
			}
			if !ok {
				t.Fatalf("seed %d: %s %s removes what others hold", seed, c.Verb, c.Object)
			}
		}
		if removals += count; count != p.Removals {
			t.Fatalf("seed %d: %d removals, and the plan says %d", seed, count, p.Removals)
		}
	}
	if removals < 500 {
		t.Errorf("%d removals: too few to show anything", removals)
	}
}

// TestMoveAndQuota: a quota keeps the bounds that are not named, and a host that moves waits for the proof.
func TestMoveAndQuota(t *testing.T) {
	f := &Found{
		Tenants:  map[string]v1.Tenant{"acme": {Name: "acme", Version: "a1", Quota: &v1.TenantQuota{Hosts: new(3), PKeys: new(2)}}},
		Clusters: map[string]v1.Cluster{"c1": {Name: "c1", Tenant: "acme", PKey: 1, Hosts: []string{"n1"}, Version: "k1"}},
		Hosts:    map[string]Host{"n1": {Cluster: "c1", Epoch: 4, Set: set}},
	}
	p := Make(&v1.Wanted{
		Set:         set,
		Tenants:     []v1.WantedTenant{{Name: "acme", Quota: &v1.WantedQuota{Hosts: new(v1.Unlimited), Clusters: new(2), PKeys: new(5)}}},
		Clusters:    []v1.WantedCluster{{Name: "c2", Tenant: "acme"}},
		Assignments: []v1.WantedAssignment{{Cluster: "c2", Hosts: []string{"n1"}, Window: 600}},
	}, f)
	var verbs []string
	for _, c := range p.Changes {
		verbs = append(verbs, c.Verb)
	}
	if want := []string{"release", "set-quota", "create-cluster", "assign"}; !slices.Equal(verbs, want) {
		t.Fatalf("%v, want %v", verbs, want)
	}
	quota, move := p.Changes[1], p.Changes[3]
	if q := quota.Quota; q.Hosts != nil || *q.Clusters != 2 || *q.PKeys != 5 || quota.Version != "a1" {
		t.Errorf("quota %+v", quota)
	}
	if p.Changes[0].Version != "4" || move.Version != "4" || !move.Waits || move.Assignment.Window != 600 || move.Assignment.Set != set ||
		!slices.Contains(move.After, "host/n1") || !slices.Contains(move.After, "cluster/c2") || !slices.Contains(move.After, "quota/acme") {
		t.Errorf("move %+v", move)
	}
	if p.Removals != 1 {
		t.Errorf("%d removals, want 1", p.Removals)
	}
}

// TestUserGoesFirst: of two clusters that are pruned, the one that uses the other is deleted before it.
func TestUserGoesFirst(t *testing.T) {
	w := &world{Found: Found{
		Tenants: map[string]v1.Tenant{"t": {Name: "t", Version: "t1"}},
		Clusters: map[string]v1.Cluster{
			"a": {Name: "a", Tenant: "t", Shared: true, Set: set, Version: "a1"}, "b": {Name: "b", Tenant: "t", Set: set, Version: "b1"},
		},
		Hosts: map[string]Host{},
	}}
	w.use("b", "a", "")
	p := Make(&v1.Wanted{Set: set, Prune: true}, &w.Found)
	if len(p.Changes) != 2 || p.Changes[0].Name != "b" || p.Changes[1].Name != "a" || !slices.Equal(p.Changes[1].After, []string{"leave/a"}) {
		t.Fatalf("plan %+v", p.Changes)
	}
	carry(t, w, p, func(int) bool { return false }, func(*v1.PlannedChange) {})
}
