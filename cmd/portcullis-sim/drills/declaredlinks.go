package drills

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
)

// declaredSite is a site whose declared topology is kept by the service, and enforced.
type declaredSite struct {
	*site
	revisions *topology.Service
	base      *topospec.Revision
}

// newDeclaredSite makes one with the netlist in force, which ann wrote and bob and cleo approved.
func newDeclaredSite(s *drill.Scene, rules topology.Rules, amend func(*topospec.Revision)) *declaredSite {
	d := &declaredSite{}
	d.site = newSite(s, options{
		fabric:      drill.SiteOptions{Declared: true, Amend: amend},
		credentials: []account{{name: "ann"}, {name: "bob"}, {name: "cleo"}, {name: "mallory"}},
		api: func(v *site, o *api.Options) {
			d.revisions = topology.New(topology.Options{Store: v.store, Log: v.log, Now: v.clock, Rules: rules, Look: v.sight})
			o.Topospec = d.revisions
		},
	})
	d.base = d.Options.SM.Topology.Spec.Revision()
	number := d.draft("ann", d.base)
	for _, who := range []string{"bob", "cleo"} {
		d.must(who, "POST", d.path(number, "approve"), d.approval(number))
	}
	for _, mode := range []string{"observe", "warn", "enforce"} {
		d.must("ann", "POST", d.path(number, "activate"), `{"mode":"`+mode+`","reason":"as built"}`)
	}
	d.follow()
	return d
}

// sight is the fabric as the Subnet Manager showed it last.
func (v *site) sight() (*topology.Sight, error) {
	w := v.View()
	return &topology.Sight{At: w.Time, Fabric: w.Fabric, SM: w.Fabric.PortByGUID(w.GUID), Placed: w.Topology, Complete: w.State == ib.SMMaster}, nil
}

// follow has the Subnet Manager put into force what the service wants.
func (d *declaredSite) follow() {
	w, err := d.revisions.Wanted(d.ctx())
	d.scene.Must(err)
	if d.scene.Check(w.Spec != nil, "no declared topology is in force") {
		d.Step(&sm.TopologySet{Spec: w.Spec, Mode: w.Mode, By: w.By, Back: w.Back})
	}
	d.sync()
}

func (d *declaredSite) path(number uint64, verb string) string {
	return fmt.Sprintf("/v1/topospec/revisions/%d/%s", number, verb)
}

// content is a revision as a file.
func content(r *topospec.Revision) string { return string(native.AppendTo(nil, r, native.YAML)) }

// offer hands a file in as a draft.
func (d *declaredSite) offer(who, text string) *answer {
	body, err := json.Marshal(v1.NewTopospec{Name: "fabric.yaml", Content: text, Reason: "drill"})
	d.scene.Must(err)
	return d.call(who, "POST", "/v1/topospec/revisions", string(body))
}

// draft hands a revision in, and returns its number.
func (d *declaredSite) draft(who string, r *topospec.Revision) uint64 {
	a := d.offer(who, content(r))
	var out v1.TopospecRevision
	d.scene.Must(json.Unmarshal(a.body.Bytes(), &out))
	d.scene.Check(a.good(), "a draft is answered with %d %s", a.status, &a.body)
	return out.Revision
}

// approval is the body of an approval of what a draft has.
func (d *declaredSite) approval(number uint64) string {
	var out v1.TopospecRevision
	d.scene.Must(json.Unmarshal(d.call("ann", "GET", fmt.Sprintf("/v1/topospec/revisions/%d", number), "").body.Bytes(), &out))
	return fmt.Sprintf(`{"digest":%q}`, out.Digest)
}

// rogueLink is T131: an insider declares the link that is plugged in at night.
func rogueLink(s *drill.Scene) {
	d := newDeclaredSite(s, topology.Rules{Alone: s.Off(FourEyes)}, func(r *topospec.Revision) {
		r.Policy.Two = []topospec.Touch{topospec.TouchNewDevice, topospec.TouchPolicy}
	})
	red := d.cluster("ann", "red", "h1", "h5")
	d.VictimOf("h1", "h5", red)
	place := d.SwitchPort("h4", 1)
	free := d.freePort(place.Node)
	if !s.Check(free != ib.NoPort, "%s has no free port, so nothing is proven", place.Node) {
		return
	}
	rogue := d.moved("h4", place.Node, place.Port, free)
	rogue.Devices = slices.Clone(rogue.Devices)

	s.Tried("mallory drafts a revision in which the adapter of h4 is at port %d of %s, approves it, names the digest of another one, and puts it into force; then the cable is moved there", free, place.Node)
	d.mark()
	number := d.draft("mallory", rogue)
	wrong := d.call("bob", "POST", d.path(number, "approve"), `{"digest":"000000000000"}`)
	s.Check(!wrong.good(), "a digest of something else approves the draft")
	_ = d.call("mallory", "POST", d.path(number, "approve"), d.approval(number)) // whether it counts shows next
	put := d.call("mallory", "POST", d.path(number, "activate"), `{"mode":"enforce","reason":"a typo"}`)
	s.Check(!put.good(), "the draft that mallory alone approved is put into force: it is answered with %d", put.status)
	d.follow()
	s.Must(d.Fabric.Unlink("h4", 1))
	s.Must(d.Fabric.Relink("h4", 1, place.Node, free))
	d.notice()
	d.sync()
	state := d.Fabric.PortInfo(place.Node, free).PortState
	if s.Check(state != ib.PortActive, "the link that mallory alone declared is up: %s port %d is %v", place.Node, free, state) {
		s.Stopped("the author of a revision is none of those who approve it: activation is refused, %s", put.code())
	}
	d.Counted(d.stepped("mallory", "draft"), "audit log: mallory drafted revision %d", number)
	if s.Off(FourEyes) {
		return
	}
	shown := d.call("bob", "POST", d.path(number, "simulate"), `{"mode":"enforce"}`).body.String()
	s.Check(strings.Contains(shown, `"changed":2`), "who approves is not shown what changes: %s", shown)
	d.must("bob", "POST", d.path(number, "approve"), d.approval(number))
	d.must("bob", "POST", d.path(number, "activate"), `{"mode":"enforce","reason":"it was moved"}`)
	d.follow()
	if s.Check(d.Fabric.PortInfo(place.Node, free).PortState == ib.PortActive, "the link that another person approved is %v", d.Fabric.PortInfo(place.Node, free).PortState) {
		s.Stopped("the same link is up when another person has approved it")
	}
}

// freePort is a port of a switch without a cable.
func (v *site) freePort(node string) ib.PortNum {
	n := v.List.Find(node)
	for p := 1; p < len(n.Ports); p++ {
		if n.Ports[p].Peer == "" {
			return ib.PortNum(p)
		}
	}
	return ib.NoPort
}

// moved is the topology with the cable of a host at another port of the same switch.
func (d *declaredSite) moved(host, node string, from, to ib.PortNum) *topospec.Revision {
	r := d.base.Clone()
	at := topospec.End{GUID: d.List.Find(node).GUID, Port: from}
	for i := range r.Links {
		for _, end := range []*topospec.End{&r.Links[i].A, &r.Links[i].B} {
			if *end == at {
				end.Port = to
			}
		}
	}
	d.scene.Check(content(r) != content(d.base), "the declared topology does not have %s", host)
	return r
}

// stepped reports whether the audit log has a step of a revision by an actor.
func (d *declaredSite) stepped(actor, step string) bool {
	return d.logged(func(who, action string) bool { return who == actor && strings.HasSuffix(action, step) })
}

// cutTopology is T132: what is put into force is empty, cut off, or of another fabric.
func cutTopology(s *drill.Scene) {
	d := newDeclaredSite(s, topology.Rules{}, func(r *topospec.Revision) {
		if s.Off(TopologyGuards) {
			r.Policy.MinScore, r.Policy.MaxFlips = 1, 1000
		}
	})
	red := d.cluster("ann", "red", "h1", "h5")
	d.VictimOf("h1", "h5", red)
	whole := content(d.base)

	s.Tried("files are handed in that are empty, whose last line is cut, whose middle is gone, and that have no link")
	d.mark()
	lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	bare := d.base.Clone()
	bare.Links = nil
	for what, text := range map[string]string{
		"an empty file": "", "a file without its last line": strings.Join(lines[:len(lines)-1], ""),
		"a file whose last line is cut": whole[:len(whole)-8], "a file without its middle": strings.Join(slices.Concat(lines[:len(lines)/2], lines[len(lines)/2+3:]), ""),
		"a topology without links": content(bare),
	} {
		a := d.offer("ann", text)
		s.Check(!a.good() && a.status < 500, "%s becomes a draft: %d", what, a.status)
	}
	s.Stopped("a file says where it ends and what its digest is: one that was cut is none")

	s.Tried("a whole file has half of the links, and is approved; then it is put into force")
	half := d.base.Clone()
	half.Links = slices.Clone(half.Links)[:len(half.Links)/2]
	number := d.draft("ann", half)
	for _, who := range []string{"bob", "cleo"} {
		d.must(who, "POST", d.path(number, "approve"), d.approval(number))
	}
	put := d.call("ann", "POST", d.path(number, "activate"), `{"mode":"enforce","reason":"as built"}`)
	s.Check(!put.good(), "the half topology is put into force: it is answered with %d", put.status)
	spec, err := topospec.Compile("half", half)
	s.Must(err)
	d.Attack()
	d.Step(&sm.TopologySet{Spec: spec, Mode: topospec.Enforce, By: "ann"})
	d.Run(10 * time.Second)
	d.sync()
	off := 0
	for _, h := range hosts {
		if !d.Open(h) {
			off++
		}
	}
	s.Check(off == 0, "the ports of %d hosts were switched off", off)
	if s.Check(d.delivered("h1", "h5", red), "h1 and h5 were cut off by a topology that has half of the fabric") {
		s.Stopped("service (%s) and Subnet Manager enforce no topology that most of the fabric is not in", put.code())
	}
	if !s.Off(TopologyGuards) {
		d.Reported(time.Minute, "that the topology is refused", drill.Is(func(e *declared.TopologyRefused) bool { return e.Reason != "" }))
	}
}
