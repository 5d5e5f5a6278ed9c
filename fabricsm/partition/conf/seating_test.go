package conf_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// places remembers where GUIDs were taken to be.
type places map[ib.GUID]ib.Place

// membersOf finds the members that rules make in a fabric in the simple way: it examines the whole fabric.
func membersOf(r *conf.Rules, f *topo.Fabric, self ib.GUID, before places) ([]partition.Member, places) {
	var members []partition.Member
	now := places{}
	add := func(g ib.GUID, k ib.PKey) {
		var seen []ib.Place
		for _, p := range f.PortsByGUID(g) {
			if at := f.PlaceOf(p); !at.IsZero() {
				seen = append(seen, at)
			}
		}
		switch was, ok := before[g]; {
		case ok && slices.Contains(seen, was):
			now[g] = was
		case len(seen) == 1:
			now[g] = seen[0]
		default:
			return
		}
		members = append(members, partition.Member{GUID: g, PKey: k, Place: now[g]})
	}
	each := func(typ ib.NodeType, k ib.PKey) {
		for _, p := range f.EndPorts() {
			if f.NodeOf(p).Type == typ {
				add(f.Port(p).GUID, k)
			}
		}
	}
	for _, part := range r.Partitions {
		for _, w := range part.Who {
			switch w.Group {
			case conf.OnePort:
				add(w.GUID, part.PKey)
			case conf.Self:
				add(self, part.PKey)
			case conf.AllCAs:
				each(ib.NodeCA, part.PKey)
			case conf.AllRouters:
				each(ib.NodeRouter, part.PKey)
			default:
			}
		}
	}
	return partition.NewRoster(members).All(), now
}

func TestMembers(t *testing.T) {
	r, err := conf.Parse("f", []byte("A=1 : SELF=full, 0x99=full;\nB=2 : ALL_CAS=full;"))
	if err != nil {
		t.Fatal(err)
	}
	self, second := portOf(0), portOf(1)
	selfs := []partition.Member{{GUID: self, PKey: 0x8001, Place: at(1)}, {GUID: self, PKey: 0x8002, Place: at(1)}}
	seconds := []partition.Member{{GUID: second, PKey: 0x8002, Place: at(2)}}

	s := conf.NewSeating(r)
	granted, withdrawn := s.Seat(tree(t), self)
	if d := cmp.Diff(selfs, granted); d != "" || len(withdrawn) > 0 {
		t.Errorf("a GUID at two places is nowhere (-want +got):\n%s\nwithdrawn: %v", d, withdrawn)
	}
	if _, ok := s.PlaceOf(second); ok {
		t.Error("a GUID at two places has a place")
	}

	s = conf.NewSeating(r)
	granted, _ = s.Seat(honest(), self)
	if d := cmp.Diff(append(selfs, seconds...), granted); d != "" {
		t.Errorf("a GUID at one place (-want +got):\n%s", d)
	}
	s.Moved(second)
	if granted, withdrawn = s.Seat(tree(t), self); len(granted)+len(withdrawn) > 0 {
		t.Errorf("a GUID that shows up elsewhere, too, moved: granted %v, withdrawn %v", granted, withdrawn)
	}
	if place, ok := s.PlaceOf(second); !ok || place != at(2) {
		t.Errorf("it is at %v, %v", place, ok)
	}
}

// honest is tree before the third host showed the GUID of the second; the third is
// not cabled.
func honest() *topo.Fabric {
	var k topotest.Kit
	sw := k.Switch(1, 1, 8)
	for i := range 3 {
		if h := k.Host(1); i < 2 {
			k.LinkPorts(sw, i+1, h, 1)
		}
	}
	return k.Freeze()
}

// TestSeatingAgainstAll changes rules and a fabric at random and compares the reported changes with a full comparison.
func TestSeatingAgainstAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k topotest.Kit
		sw := k.Switch(1, 1, 8)
		for i := range 5 {
			k.LinkPorts(sw, i+1, k.Host(1), 1)
		}
		rules := drawRules(t)
		s := conf.NewSeating(rules)
		have := make(map[partition.Member]bool)
		var before places
		self := portOf(0)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0:
				rules = drawRules(t)
				s.SetRules(rules)
			case 1:
				self = portOf(rapid.IntRange(0, 2).Draw(t, "self"))
			default:
				id := k.PortOf(k.Hosts[rapid.IntRange(0, 4).Draw(t, "host")], 1)
				s.Moved(k.Port(id).GUID)
				if peer := k.Port(id).Peer; peer != topo.None && rapid.Bool().Draw(t, "unplug") {
					k.Disconnect(id)
				} else {
					k.Connect(k.PortOf(0, ib.PortNum(rapid.IntRange(1, 8).Draw(t, "port"))), id)
					for i := range 5 { // whose cable was there has none now
						s.Moved(k.Port(k.PortOf(k.Hosts[i], 1)).GUID)
					}
				}
				if rapid.IntRange(0, 3).Draw(t, "rename") == 0 {
					p := k.Port(id)
					p.GUID = portOf(rapid.IntRange(0, 4).Draw(t, "guid"))
					k.SetPort(id, p)
					s.Moved(p.GUID)
				}
			}
			f := k.Freeze()
			granted, withdrawn := s.Seat(f, self)
			for _, m := range withdrawn {
				if !have[m] {
					t.Fatalf("withdrawn: %v, which was not granted", m)
				}
				delete(have, m)
			}
			for _, m := range granted {
				if have[m] {
					t.Fatalf("granted again: %v", m)
				}
				have[m] = true
			}
			want, now := membersOf(rules, f, self, before)
			before = now
			if d := cmp.Diff(want, partition.NewRoster(slices.Collect(maps.Keys(have))).All()); d != "" {
				t.Fatalf("members (-want +got):\n%s", d)
			}
		}
	})
}

func drawRules(t *rapid.T) *conf.Rules {
	r := &conf.Rules{}
	for k := range ib.PKey(3) {
		p := conf.Partition{PKey: 0x8001 + k}
		for h := range 5 {
			if rapid.IntRange(0, 2).Draw(t, "named") == 0 {
				p.Who = append(p.Who, conf.Who{GUID: portOf(h)})
			}
		}
		for _, g := range []conf.Group{conf.Self, conf.AllCAs} {
			if rapid.IntRange(0, 5).Draw(t, "group") == 0 {
				p.Who = append(p.Who, conf.Who{Group: g})
			}
		}
		if len(p.Who) > 0 {
			r.Partitions = append(r.Partitions, p)
		}
	}
	return r
}
