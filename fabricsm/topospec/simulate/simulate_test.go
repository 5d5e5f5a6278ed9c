package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/simulate"
	"portcullis/fabricsm/topospec/topospectest"
	"portcullis/fabricsm/topospec/verify"
)

// owners assigns every adapter to one tenant per host.
type owners struct{ s *topospec.Spec }

func (o owners) Owner(_ ib.Place, g ib.GUID) (host, tenant string) {
	if id := o.s.DeviceByGUID(g); id != topospec.None && o.s.Device(id).Role == topospec.RoleCompute {
		return o.s.Device(id).Host, "tenant of " + o.s.Device(id).Host
	}
	return "", ""
}

// hosts returns the indices of the links of hosts.
func hosts(r *topospec.Revision) (at []int) {
	for i := range r.Links {
		if r.Links[i].Class == topospec.ClassHost {
			at = append(at, i)
		}
	}
	return at
}

func TestRun(t *testing.T) {
	now := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		active func(r *topospec.Revision)
		next   func(t *testing.T, r *topospec.Revision)
		hits   int
		flips  int
		refuse []simulate.Guard
	}{
		{"the same", nil, func(*testing.T, *topospec.Revision) {}, 0, 0, nil},
		{"one wrong link: one port down", nil, func(t *testing.T, r *topospec.Revision) {
			r.Links[hosts(r)[0]].B.GUID = topospectest.Device(t, r, "spare-1").GUID
			topospectest.Device(t, r, "spare-1").Stock = topospec.InUse
		}, 1, 1, nil},
		{"30 % wrong: refused", nil, func(_ *testing.T, r *topospec.Revision) {
			n := 0
			for i := range r.Links {
				if r.Links[i].Class == topospec.ClassTrunk && n%2 == 0 && i+1 < len(r.Links) && r.Links[i+1].Class == topospec.ClassTrunk && n < 60 {
					r.Links[i].B, r.Links[i+1].B = r.Links[i+1].B, r.Links[i].B
				}
				n++
			}
		}, -1, -1, []simulate.Guard{simulate.GuardScore, simulate.GuardCoverage, simulate.GuardFlips}},
		{"half of it cut off", nil, func(_ *testing.T, r *topospec.Revision) {
			n := 0
			r.Links = slices.DeleteFunc(r.Links, func(l topospec.Link) bool { n++; return l.Class == topospec.ClassTrunk && n%2 == 0 })
		}, -1, -1, []simulate.Guard{simulate.GuardCoverage, simulate.GuardFlips}},
		{"another fabric's", nil, func(_ *testing.T, r *topospec.Revision) {
			r.Fabric = "other"
			for i := range r.Devices {
				r.Devices[i].GUID += 0x1000000
			}
			for i := range r.Links {
				if r.Links[i].A.GUID += 0x1000000; !r.Links[i].B.IsZero() {
					r.Links[i].B.GUID += 0x1000000
				}
			}
		}, -1, -1, []simulate.Guard{simulate.GuardFabric, simulate.GuardScore, simulate.GuardCoverage, simulate.GuardFlips, simulate.GuardOwnPath}},
		{"the Subnet Manager's place is wrong", nil, func(t *testing.T, r *topospec.Revision) {
			g := topospectest.Device(t, r, "sm-1").GUID
			for i := range r.Links {
				if r.Links[i].B.GUID == g {
					r.Links[i].B.GUID = topospectest.Device(t, r, "spare-1").GUID
					topospectest.Device(t, r, "spare-1").Stock = topospec.InUse
				}
			}
		}, -1, -1, []simulate.Guard{simulate.GuardScore, simulate.GuardFlips, simulate.GuardOwnPath}},
		{"it would promote itself", nil, func(_ *testing.T, r *topospec.Revision) { r.Policy.Mode = topospec.Enforce }, 0, 0, []simulate.Guard{simulate.GuardPromotion}},
		{"it would lift its own limits", func(r *topospec.Revision) { r.Policy.MaxFlips = 1 }, func(t *testing.T, r *topospec.Revision) {
			r.Policy.MaxFlips, r.Policy.MinScore = 1000, 1
			for _, i := range hosts(r)[:2] {
				r.Links[i] = topospec.Link{A: r.Links[i].A, State: topospec.Reserved}
			}
		}, 2, 2, []simulate.Guard{simulate.GuardFlips}},
		{"freeze", func(r *topospec.Revision) {
			r.Policy.Freeze = []topospec.Window{{From: now.Add(-time.Hour), To: now.Add(time.Hour), Why: "holidays"}}
		}, func(*testing.T, *topospec.Revision) {}, 0, 0, []simulate.Guard{simulate.GuardFreeze}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			active := topospectest.Revision(t, topospectest.Small(), "spare-1,0x0020000000009001,ConnectX-6,,spare")
			next := active.Clone()
			if tt.active != nil {
				tt.active(active)
			}
			f, sm := topospectest.Fabric(t, active)
			tt.next(t, next)
			s := topospectest.Spec(t, active)
			r := simulate.Run(simulate.Input{Active: s, Next: topospectest.Spec(t, next), Fabric: f, SM: sm, Owners: owners{s}, Now: now})
			var refused []simulate.Guard
			for _, x := range r.Refused {
				if len(refused) == 0 || refused[len(refused)-1] != x.Guard || x.Guard == simulate.GuardOwnPath {
					refused = append(refused, x.Guard)
				}
			}
			if tt.hits >= 0 && (len(r.Hits) != tt.hits || r.Flips != tt.flips) {
				t.Errorf("%d hits, %d flips; want %d and %d", len(r.Hits), r.Flips, tt.hits, tt.flips)
			}
			if d := cmp.Diff(refused, tt.refuse); d != "" {
				t.Errorf("refused (-got +want):\n%s\n%+v", d, r.Refused)
			}
		})
	}
}

// TestHit names the port, the host and the tenant of one wrong link.
func TestHit(t *testing.T) {
	active := topospectest.Revision(t, topospectest.Small())
	f, sm := topospectest.Fabric(t, active)
	next := active.Clone()
	i := hosts(next)[1]
	next.Links[i] = topospec.Link{A: next.Links[i].A, State: topospec.Reserved}
	s := topospectest.Spec(t, active)
	r := simulate.Run(simulate.Input{Active: s, Next: topospectest.Spec(t, next), Fabric: f, SM: sm, Owners: owners{s}})
	want := []simulate.Hit{{
		At: next.Links[i].A.Place(), Where: "rack 1 leaf-1 port 2", Verdict: verify.Lit, Action: verify.Disable, Expected: "nothing",
		Seen: "rack 1 host-0002 host-0002 mlx5_1 port 1", Host: "host-0002", Tenant: "tenant of host-0002", New: true,
	}}
	if d := cmp.Diff(r.Hits, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if r.Hosts != 1 || len(r.Tenants) != 1 || r.Changed != 1 || len(r.Refused) != 0 || r.Would {
		t.Errorf("%+v", r)
	}
}
