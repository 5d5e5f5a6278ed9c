package threats

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/lint"
	"portcullis/fabricsm/topospec/verify"
)

// announcedRMA is the part of T151 in which the replacement was announced: a spare
// of the right model waits for a person, and gets nothing before.
func announcedRMA(s *drill.Scene) {
	const guid ib.GUID = 0x00BAD00000000200
	t := s.Site(drill.SiteOptions{Tenants: append(drill.TwoTenants(), drill.Tenant{Name: "C", PKey: drill.KeyC, Hosts: []string{"h7", "h4"}}), Declared: true, Amend: func(r *topospec.Revision) {
		at := slices.IndexFunc(r.Devices, func(d topospec.Device) bool { return d.Name == "h7" })
		r.Devices[at].Model = "ConnectX-6"
		for i := range r.Links {
			if l := &r.Links[i]; l.A.GUID == r.Devices[at].GUID || l.B.GUID == r.Devices[at].GUID {
				l.State = topospec.Maintenance
			}
		}
		r.Devices = append(r.Devices, topospec.Device{
			GUID: guid, Name: "spare", Kind: topospec.KindHCA, Model: "ConnectX-6", Stock: topospec.Spare, Ports: 1, Rack: "R1",
		})
	}})
	t.Victim("h1", "h5")
	s.Tried("the HCA of h7 is replaced by a spare of its model, as it was announced, before an operator confirmed it")
	t.Attack()
	exchange(t, "h7", guid)
	place := t.Place("h7", 1)
	t.Reported(10*time.Second, "a candidate at "+place.String(), finding(place, verify.RMACandidate))
	t.Run(2 * time.Minute)
	s.Check(!isOff(t, place), "port %v is switched off although a replacement was announced", place)
	gotNothing(drill.Port("spare"))(t, nil)
	if s.Check(!t.Open("h7"), "the port of the spare carries data") {
		s.Stopped("the spare is seen and held: no LID, no key and no P_Key before a person accepts it")
	}
	at := t.SwitchPort("h7", 1)
	s.Check(!slices.Contains(t.TenantKeys(at), drill.KeyC) || !t.Open("h7"), "the port of the spare carries the P_Key of tenant C")
}

// insideSwitches is T152.
func insideSwitches(s *drill.Scene) {
	design := generate.Design{
		Fabric: "drill", Template: generate.FatTree, SwitchModel: "MQM9700", HostModel: "ConnectX-7",
		Units: 2, Hosts: 3, Aggregation: true, SM: []generate.SMHost{{Name: "sm-1", Unit: 1, Rail: 1}},
	}
	made, err := manifest(design)
	s.Must(err)
	whole, err := design.Revision(made)
	s.Must(err)
	inside := 0
	for i := range whole.Links {
		if whole.Links[i].Class == topospec.ClassInternal {
			inside++
		}
	}
	s.Tried("a topology of switches with 64 ports is declared, without the aggregation node that each of them shows at port 65")
	if s.Check(inside > 0, "the generator leaves out what is inside switches") {
		s.Stopped("the generator knows the models and declares %d links inside switches", inside)
	}
	bare := whole.Clone()
	bare.Links = slices.DeleteFunc(bare.Links, func(l topospec.Link) bool { return l.Class == topospec.ClassInternal })
	spec, err := topospec.Compile("drill", bare)
	s.Must(err)
	told := 0
	for _, f := range lint.Check(spec) {
		if f.Rule == lint.Inside {
			if told++; told == 1 {
				drill.Note(&s.Result.Reported, "%s: %s", []any{f.Object, f.Text})
			}
		}
	}
	s.Check(told == inside, "%d of %d aggregation nodes that are missing are reported before the topology is in force", told, inside)
	omitted := breach{
		tried: "it is put into force all the same: an aggregation node answers at a port where nothing is declared",
		do: func(t *drill.Site) {
			n := netlist.NewNode(ib.NodeCA, "inside", 0x0020_0000_0001_0000, 1)
			n.Ports[1].Peer, n.Ports[1].PeerPort = "leaf3", freePort
			t.Must(t.Fabric.Insert(n))
		},
		at:      atFree("leaf3"),
		verdict: verify.Unplanned,
		after: func(t *drill.Site, _ []ib.Place) {
			for _, h := range []string{"h1", "h3", "h7"} {
				t.Scene.Check(t.Open(h), "the port of %s is closed, too", h)
			}
			gotNothing(drill.Port("inside"))(t, nil)
		},
	}
	omitted.play(s)
}

// manifest assigns a GUID to every device of a design.
func manifest(d generate.Design) (generate.Manifest, error) {
	slots, err := d.Slots()
	if err != nil {
		return generate.Manifest{}, err
	}
	var b strings.Builder
	b.WriteString("name,guid,model,rack,stock\n")
	for i, s := range slots {
		fmt.Fprintf(&b, "%s,0x%016x,%s,1,in_use\n", s.Name, 0x0010_0000_0000_0000+16*(i+1), s.Model)
	}
	return generate.ParseManifest("manifest", b.String())
}
