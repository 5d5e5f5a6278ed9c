package movein

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/driver/guid2lid"
	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/format"
)

// checkFile reports what is wrong with a file that an option names, as the reader that will read it.
func checkFile(option, name string, data []byte) error {
	var err error
	switch option {
	case "qos_policy_file":
		_, err = qos.ParsePolicy(name, data)
		return err
	case "prefix_routes_file":
		_, err = path.ParseRoutes(name, data)
		return err
	case "service_name2key_map_file":
		_, err = trust.ParseServiceKeys(name, data)
		return err
	}
	f, ok := map[string]enginelist.Files{
		"root_guid_file": {Roots: name}, "cn_guid_file": {ComputeNodes: name}, "io_guid_file": {IONodes: name},
		"ids_guid_file": {IDs: name}, "torus_config": {Torus: name}, "lfts_file": {LFTs: name},
		"port_search_ordering_file": {PortOrder: name}, "dimn_ports_file": {PortOrder: name},
		"guid_routing_order_file": {Order: name}, "hop_weights_file": {Weights: name}, "port_prof_ignore_file": {Ignored: name},
	}[option]
	if !ok {
		return fmt.Errorf("no reader is known for %s", option)
	}
	var s enginelist.Settings
	return s.Read(f, func(string, int) ([]byte, error) { return data, nil })
}

const partitionsName = "partitions.conf"

// partitionFile leaves the partitions to the file itself: partitions adds an item for each rule.
func (p *Plan) partitionFile(s *opensmconf.Setting, it *Item) {
	name, _, ok := p.found(s.Value)
	if !ok {
		it.Verdict, it.Text = verdict.Unsafe, "the file is not among those of the site: see "+partitionsName
		return
	}
	it.Verdict, it.Key, it.To = verdict.Changed, "", partitionsName
	it.Text = "partitions are no key: portcullisd sm --partitions " + partitionsName + "; a service has a cluster for each, see report.md"
	p.last["partition_config_file"] = opensmconf.Setting{Name: s.Name, Value: name, Line: s.Line}
}

// partitions takes the rules of partitions.conf.
func (p *Plan) partitions() {
	name := p.last["partition_config_file"].Value
	if name == "" {
		name = partitionsName
	}
	name, data, ok := p.found(name)
	if !ok {
		p.add(Item{
			File: partitionsName, Setting: "partitions", Verdict: verdict.Unsafe, Loses: true,
			Text: "without the file OpenSM makes all ports full members of the default partition, so that all hosts reach each other; here they are limited ones, and do not. If there is a file, copy it into the directory; else write one with a partition for all: ALL_CAS=full",
		})
		return
	}
	adapted, refused, err := conf.Adapt(name, data)
	if err != nil {
		p.problems(name, "partition", err, "no partition is taken before the file is right")
		return
	}
	for _, r := range refused {
		it := Item{File: name, Line: r.Line, Setting: "member", Value: r.Text, To: r.To, Text: r.Why, Loses: r.Loses, Verdict: verdict.Changed}
		if r.Loses {
			it.Verdict = verdict.Unsupported
			if r.To != "" {
				it.Verdict = verdict.Unsafe
			}
		}
		p.add(it)
	}
	rules, err := conf.Parse(name, adapted)
	if err != nil {
		p.problems(name, "partition", err, "the file is not taken")
		return
	}
	for i := range rules.Partitions {
		part := &rules.Partitions[i]
		p.add(Item{
			File: name, Setting: "partition", Value: fmt.Sprintf("%s=%v", part.Name, part.PKey.Base()), Verdict: verdict.Taken, To: partitionsName,
			Text: fmt.Sprintf("%d full members", len(part.Who)),
		})
	}
	p.clusters = rules.Partitions
	p.file(partitionsName, adapted, false)
}

// problems adds an item for each of the joined errors of a file, which begin with NAME:LINE.
func (p *Plan) problems(name, setting string, err error, also string) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, e := range all {
		line, text := placeOf(name, e.Error())
		p.add(Item{File: name, Line: line, Setting: setting, Verdict: verdict.Unknown, Text: text + "; " + also, Loses: true})
	}
}

// placeOf splits an error that begins with NAME:LINE.
func placeOf(name, text string) (line int, rest string) {
	after, ok := strings.CutPrefix(text, name+":")
	number, rest, cut := strings.Cut(after, ": ")
	line, err := strconv.Atoi(number)
	if !ok || !cut || err != nil {
		return 0, text
	}
	return line, rest
}

// lids takes the LIDs that OpenSM kept.
func (p *Plan) lids() {
	const name = "guid2lid"
	_, data, ok := p.found(name)
	if !ok {
		p.add(Item{
			File: name, Setting: "LIDs", Verdict: verdict.NotNeeded, Key: "fabric.lids.guid2lid",
			Text: "there is no such file; LIDs that ports have when the fabric is taken over stay. --cache names the directory, OpenSM's is /var/cache/opensm",
		})
		return
	}
	entries, dropped, err := guid2lid.Parse(name, data)
	if err != nil {
		p.problems(name, "LIDs", err, "no LID is taken")
		return
	}
	for _, d := range dropped {
		line, text := placeOf(name, d.Error())
		p.add(Item{File: name, Line: line, Setting: "LID", Verdict: verdict.Unknown, Text: text + "; the port gets another LID unless it has this one", Loses: true})
	}
	p.add(Item{
		File: name, Setting: "LIDs", Verdict: verdict.Taken, Key: "fabric.lids.guid2lid", To: quote(name),
		Text: fmt.Sprintf("LIDs of %d ports", len(entries)),
	})
	p.set("fabric.lids.guid2lid", quote(name), name)
	p.file(name, guid2lid.Format(entries), false)
}

// topoSwitch and topoFile leave the declared topology to topology.
func (p *Plan) topoSwitch(s *opensmconf.Setting, it *Item) {
	on, _ := opensmconf.Truth(s.Value)
	it.Verdict, it.Text = verdict.NotNeeded, "it is off, as here"
	if on {
		it.Verdict, it.To = verdict.Taken, "enforce"
		it.Text = "ports that differ are switched off"
	}
}

func (p *Plan) topoFile(s *opensmconf.Setting, it *Item) {
	switch _, _, ok := p.found(s.Value); {
	case opensmconf.IsNull(s.Value):
		it.Verdict, it.Text = verdict.NotNeeded, "no file is named"
	case ok:
		it.Verdict, it.Text = verdict.Taken, "see the file"
	case p.isOn("topo_config_enabled"):
		it.Verdict, it.Loses, it.Text = verdict.Unsupported, true, "the file is not among those of the site: without it no topology is enforced"
	default:
		it.Verdict, it.Text = verdict.NotNeeded, "it has no effect while topo_config_enabled is off"
	}
}

// topology takes the declared topology.
func (p *Plan) topology() {
	s, named := p.value("topo_config_file")
	value := s.Value
	if !named {
		value = "topoconfig.conf"
	}
	name, data, ok := p.found(value)
	if !ok {
		return
	}
	r, err := format.Declared(name, data, format.Sealed)
	if err == nil {
		_, err = topospec.Compile(name, r)
	}
	if err != nil {
		p.problems(name, "topology", err, "the file is not taken, and no topology is enforced")
		return
	}
	mode := "observe"
	text := "differences are recorded; with fabric.topology.mode enforce ports that differ are switched off"
	if on, _ := opensmconf.Truth(p.last["topo_config_enabled"].Value); on {
		mode, text = "enforce", "ports that differ are switched off, as before"
	}
	p.add(Item{File: name, Setting: "topology", Verdict: verdict.Taken, Key: "fabric.topology.file", To: quote(filesFolder + name), Text: text})
	p.set("fabric.topology.file", quote(filesFolder+name), name)
	p.set("fabric.topology.mode", mode, "topo_config_enabled")
	p.copyFile(name, data, false)
}

// rest names files that no setting names.
func (p *Plan) rest() {
	for _, name := range slices.Sorted(maps.Keys(p.site.Files)) {
		if !p.used[name] {
			p.add(Item{File: name, Setting: "file", Verdict: verdict.NotNeeded, Text: "no setting names it, and it is none of OpenSM's files: it was not looked at"})
		}
	}
}
